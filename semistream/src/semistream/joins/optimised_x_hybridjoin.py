"""Optimised X-HYBRIDJOIN (001 section 4.2, algorithm 1)."""

from typing import Any, ClassVar

import numpy as np

from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs


class OptimisedXHybridJoin(HybridJoin):
    """HYBRIDJOIN behind a fixed H_R: the first rows of R, which is expected in the order of access frequency.

    The stream-probing phase looks each stream tuple up in H_R; only those that it does not match go on to the
    disk-probing phase, which is HYBRIDJOIN's.
    """

    needs: ClassVar[Needs] = Needs(front_stage=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        for number in range(self.relation.pages):
            page = self.disk_buffer.load(number)
            rows = np.arange(min(len(page.keys), self.split.cache_slots - self.front_stage.cache.count))
            self.front_stage.admit(page, rows, np.ones(len(rows), dtype=np.int32))
            if not self.front_stage.cache.has_room:
                break
