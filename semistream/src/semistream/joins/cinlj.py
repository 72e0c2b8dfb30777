"""CINLJ: INLJ behind the front stage (CHYBRIDJOIN 2017, section 3.3)."""

from typing import Any, ClassVar

import numpy as np
from semistream.hashing import home, mix, tag
from semistream.joins.inlj import IndexNestedLoopJoin
from semistream.kernels import kernel
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["CachedIndexNestedLoopJoin"]

_THRESHOLD = 2
_PLACES_PER_CACHED = 8
_BYTES_PER_PLACE = 9


class CachedIndexNestedLoopJoin(IndexNestedLoopJoin):
    """Reads a page for each stream tuple that the front stage does not match.

    INLJ joins one stream tuple at a time, so a match does not show how frequent its key is. A temporary buffer counts
    recent keys. A master row whose key it has counted twice enters the front stage.
    """

    paper_name: ClassVar[str] = "CINLJ"
    unique_key: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(
        front_stage=True, least_waiting=1, most_waiting=1, extra_per_cached=_PLACES_PER_CACHED * _BYTES_PER_PLACE
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._recent = _TemporaryBuffer(_PLACES_PER_CACHED * self.split.cache_slots)

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + self._recent.nbytes

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Cache the matched tuple of the page if the temporary buffer has counted its key twice."""
        seen = np.array([self._recent.count(int(page.keys[row])) for row in matched], dtype=np.int32)
        frequent = seen >= _THRESHOLD
        self.front_stage.admit(page, matched[frequent].astype(np.int64), seen[frequent])

    def _remember_absent(self, keys: np.ndarray) -> None:
        self.front_stage.remember_absent(keys)


class _TemporaryBuffer:
    """Counts recent keys. A key overwrites another one at the same place.

    All counts restart at 0 after as many keys as there are places.
    """

    def __init__(self, places: int) -> None:
        self._keys = np.zeros(places, dtype=np.int64)
        self._counts = np.zeros(places, dtype=np.uint8)
        self._age = 0
        self.nbytes = self._keys.nbytes + self._counts.nbytes

    def count(self, key: int) -> int:
        """Count a key, and return its count."""
        self._age += 1
        if self._age > len(self._keys):
            self._counts[:] = 0
            self._age = 1
        return int(_count(key, self._keys, self._counts))


@kernel
def _count(key: int, keys: np.ndarray, counts: np.ndarray) -> int:
    place = home(tag(mix(key)), len(keys))
    if keys[place] != key:
        keys[place] = key
        counts[place] = 0
    counts[place] = min(counts[place] + 1, 255)
    return counts[place]  # type: ignore[no-any-return]
