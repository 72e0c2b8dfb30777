"""CINLJ: INLJ behind the front stage (003 section 3.3)."""

from typing import Any, ClassVar

import numpy as np

from semistream.joins.inlj import IndexNestedLoopJoin
from semistream.kernel import home, kernel, mix, tag
from semistream.memory_split import Needs
from semistream.relation.base import Page

_THRESHOLD = 2
_PLACES_PER_CACHED = 8
_BYTES_PER_PLACE = 9


class CachedIndexNestedLoopJoin(IndexNestedLoopJoin):
    """Looks up what the front stage does not have; a key seen twice within the buffer's span enters the front stage.

    INLJ does not gather stream tuples, so it cannot tell frequent keys: a temporary buffer remembers the keys of late.
    """

    needs: ClassVar[Needs] = Needs(
        front_stage=True, least_waiting=1, most_waiting=1, extra_per_cached=_PLACES_PER_CACHED * _BYTES_PER_PLACE
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._buffer = TemporaryBuffer(_PLACES_PER_CACHED * self.split.cache_slots)

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + self._buffer.nbytes

    def _consider(self, page: Page, matched: np.ndarray) -> None:
        """Cache a tuple of the page whose key was seen twice."""
        seen = np.array([self._buffer.count(int(page.keys[row])) for row in matched], dtype=np.int32)
        frequent = seen >= _THRESHOLD
        self.front_stage.admit(page, matched[frequent].astype(np.int64), seen[frequent])

    def _remember_absent(self, keys: np.ndarray) -> None:
        self.front_stage.remember_absent(keys)


class TemporaryBuffer:
    """Counts keys; a key forgets another one that falls on its place, and all are forgotten after a time span.

    The span is as many keys as there are places.
    """

    def __init__(self, places: int) -> None:
        self._keys = np.zeros(places, dtype=np.int64)
        self._counts = np.zeros(places, dtype=np.uint8)
        self._age = 0
        self.nbytes = self._keys.nbytes + self._counts.nbytes

    def count(self, key: int) -> int:
        """Count a key and say how often it was seen."""
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
