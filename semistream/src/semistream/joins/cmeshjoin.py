"""CMESHJOIN: MESHJOIN behind the front stage (CHYBRIDJOIN 2017, section 3.1)."""

from typing import Any, ClassVar

import numpy as np
from semistream.gathering import Gathering
from semistream.joins.meshjoin import MeshJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["CMeshJoin"]


class CMeshJoin(MeshJoin):
    """Joins frequent tuples in the front stage; the others enter the window and meet all pages of R.

    If keys of R repeat, a key enters the front stage when all of its rows have been gathered, in one cycle over R.
    """

    paper_name: ClassVar[str] = "CMESHJOIN"
    needs: ClassVar[Needs] = Needs(front_stage=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._gathering = None if self.relation.unique else Gathering(self.front_stage, self.split.hidden_slots)

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + (self._gathering.nbytes if self._gathering else 0)

    def _join(self, page: Page) -> None:
        """Output the page joined with H. If keys repeat, also gather the rows of frequent ones: a second look-up."""
        if self._gathering is None:
            super()._join(page)
            return
        self._gathering.arrive(self._number(page), self.pages)
        super()._join(page)
        self._gathering.collect(page)
        self.probed += len(page.keys)

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Cache the tuples of the page that f >= threshold stream tuples of the window match, or choose their keys."""
        if self._gathering is None:
            self.front_stage.admit_frequent(page, matched)
        else:
            self._gathering.choose(page, self._number(page), matched)

    def _number(self, page: Page) -> int:
        """Return the page's number: a partition has several pages, and keys are chosen at one of them."""
        return page.first // self.relation.page_rows

    def _forget(self) -> None:
        super()._forget()
        if self._gathering is not None:
            self._gathering.forget()
