"""CHYBRIDJOIN: HYBRIDJOIN behind the front stage (003 section 3.2, algorithm 1)."""

from typing import ClassVar

import numpy as np

from spark_apps.semistream.joins.hybridjoin import HybridJoin
from spark_apps.semistream.memory_split import Needs
from spark_apps.semistream.relation.base import Page


class CHybridJoin(HybridJoin):
    """Joins frequent tuples in the front stage; the others wait for their page."""

    needs: ClassVar[Needs] = Needs(front_stage=True)

    def _consider(self, page: Page, matched: np.ndarray) -> None:
        """Lines 19 to 22: cache the tuples of the page that f >= threshold stream tuples waited for."""
        self.front_stage.consider(page, matched)

    def _remember_absent(self, keys: np.ndarray) -> None:
        self.front_stage.remember_absent(keys)
