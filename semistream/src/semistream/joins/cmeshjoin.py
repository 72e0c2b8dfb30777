"""CMESHJOIN: MESHJOIN behind the front stage (CHYBRIDJOIN 2017, section 3.1)."""

from typing import ClassVar

import numpy as np
from semistream.joins.meshjoin import MeshJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["CMeshJoin"]


class CMeshJoin(MeshJoin):
    """Joins frequent tuples in the front stage; the others enter the window and meet all pages of R.

    The front stage has at most one row per key, so the key of R must be unique.
    """

    paper_name: ClassVar[str] = "CMESHJOIN"
    needs: ClassVar[Needs] = Needs(front_stage=True)
    unique_key: ClassVar[bool] = True

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Cache the tuples of the page that f >= threshold stream tuples of the window match."""
        self.front_stage.admit_frequent(page, matched)
