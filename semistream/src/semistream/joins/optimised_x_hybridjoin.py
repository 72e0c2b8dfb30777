"""Optimised X-HYBRIDJOIN (Optimised X-HYBRIDJOIN 2012, section 4.2, algorithm 1)."""

from typing import Any, ClassVar

from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs

__all__ = ["OptimisedXHybridJoin"]


class OptimisedXHybridJoin(HybridJoin):
    """HYBRIDJOIN behind a fixed H_R: the first rows of R. R should be in the order of access frequency.

    The stream-probing phase looks up each stream tuple in H_R. Only tuples that match nothing there continue to the
    disk-probing phase, which is that of HYBRIDJOIN.
    """

    paper_name: ClassVar[str] = "Optimised X-HYBRIDJOIN"
    needs: ClassVar[Needs] = Needs(front_stage=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.preload()

    def divide_anew(self, front_stage: float) -> list[Any]:
        """Give the front stage another share of the memory; it keeps the first rows of R that fit."""
        joined = super().divide_anew(front_stage)
        self.fill()
        return joined
