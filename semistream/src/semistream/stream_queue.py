"""Q: the queue of waiting stream tuples, a doubly linked list with deletion anywhere (HYBRIDJOIN 2011, section 4.1).

A finger points at the tuple that is a given fraction of the queue away from the oldest one: the look-up position of
CHYBRIDJOIN 2017, section 5.3.1. It follows insertions and deletions at constant cost.
"""

import numpy as np
from semistream.hashing import prefetch
from semistream.kernels import Integer, kernel

__all__ = ["StreamQueue"]

_NONE = -1
_ABSENT = -2  # in _links: the slot is not in the queue
_NEWER, _OLDER = range(2)
_OLDEST, _NEWEST, _SIZE, _FINGER, _RANK = range(5)


class StreamQueue:
    """The slots of waiting tuples, in order of arrival.

    Args:
        arrival: the number in the stream of each slot's tuple; numbers grow with every tuple that is appended.
    """

    def __init__(self, arrival: np.ndarray) -> None:
        slots = len(arrival)
        self._links = np.full((slots, 2), _ABSENT, dtype=np.int32)  # one memory access reads both neighbours
        self._arrival = arrival
        self._state = np.array([_NONE, _NONE, 0, _NONE, 0], dtype=np.int64)

    @staticmethod
    def bytes_per_slot() -> int:
        """Return the bytes that the links of a tuple take."""
        return 4 + 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self._links.nbytes + self._state.nbytes

    def __len__(self) -> int:
        return int(self._state[_SIZE])

    def __contains__(self, slot: int) -> bool:
        return bool(self._links[slot, _NEWER] != _ABSENT)

    def append(self, slots: np.ndarray) -> None:
        """Add tuples; the last one is the newest."""
        _append(slots, self._links, self._state)

    def remove(self, slots: np.ndarray) -> None:
        """Remove tuples from anywhere in the queue."""
        _remove(slots, self._links, self._arrival, self._state)

    def oldest(self, count: int) -> np.ndarray:
        """Return up to `count` oldest tuples, the oldest first."""
        slots = np.empty(min(count, len(self)), dtype=np.int32)
        _walk(slots, self._links, self._state[_OLDEST])
        return slots

    def at(self, fraction: float) -> int:
        """Return the tuple whose distance from the oldest one is `fraction` of the queue's length."""
        return int(_move_finger(int(fraction * len(self)), self._links, self._state))


@kernel
def _append(slots: np.ndarray, links: np.ndarray, state: np.ndarray) -> None:
    for slot in slots:
        newest = state[_NEWEST]
        links[slot, _NEWER] = _NONE
        links[slot, _OLDER] = newest
        if newest == _NONE:
            state[_OLDEST] = slot
            state[_FINGER] = slot
            state[_RANK] = 0
        else:
            links[newest, _NEWER] = slot
        state[_NEWEST] = slot
    state[_SIZE] += len(slots)


@kernel
def _remove(slots: np.ndarray, links: np.ndarray, arrival: np.ndarray, state: np.ndarray) -> None:
    places = links.reshape(-1)
    for slot in slots:
        prefetch(places, 2 * slot)
    for slot in slots:
        newer = links[slot, _NEWER]
        older = links[slot, _OLDER]
        if slot == state[_FINGER]:
            state[_FINGER] = newer if newer != _NONE else older
            state[_RANK] -= newer == _NONE
        elif state[_RANK] > 0 and arrival[slot] < arrival[state[_FINGER]]:
            state[_RANK] -= 1
        if newer == _NONE:
            state[_NEWEST] = older
        else:
            links[newer, _OLDER] = older
        if older == _NONE:
            state[_OLDEST] = newer
        else:
            links[older, _NEWER] = newer
        links[slot, _NEWER] = _ABSENT
    state[_SIZE] -= len(slots)


@kernel
def _walk(slots: np.ndarray, links: np.ndarray, slot: Integer) -> None:
    for i in range(len(slots)):
        slots[i] = slot
        slot = np.int64(links[slot, _NEWER])


@kernel
def _move_finger(rank: int, links: np.ndarray, state: np.ndarray) -> int:
    while state[_RANK] < rank:
        state[_FINGER] = links[state[_FINGER], _NEWER]
        state[_RANK] += 1
    while state[_RANK] > rank:
        state[_FINGER] = links[state[_FINGER], _OLDER]
        state[_RANK] -= 1
    return state[_FINGER]  # type: ignore[no-any-return]
