"""CMESHJOIN: MESHJOIN behind the front stage (003 section 3.1)."""

from typing import ClassVar

import numpy as np

from semistream.joins.meshjoin import MeshJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page


class CMeshJoin(MeshJoin):
    """Joins frequent tuples in the front stage; the others meet all of R.

    The front stage holds at most one row a key, so that here the key of R is unique.
    """

    needs: ClassVar[Needs] = Needs(front_stage=True)
    unique_key: ClassVar[bool] = True

    def _consider(self, page: Page, matched: np.ndarray) -> None:
        """Cache the tuples of the page that f >= threshold stream tuples of the window match."""
        self.front_stage.consider(page, matched)
