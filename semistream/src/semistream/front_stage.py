"""The front stage: frequent master tuples in memory, probed before a stream tuple has to wait.

CHYBRIDJOIN 2017, section 3.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from semistream.frequency_recorder import FrequencyRecorder
from semistream.hashing import AHEAD, home, mix, tag
from semistream.kernels import kernel
from semistream.relation.base import Page
from semistream.stream_buffer import Chunk
from semistream.tuple_cache import NONE, TupleCache, expect, slot_of

__all__ = ["Confirm", "FrontStage"]

Confirm = Callable[[np.ndarray, np.ndarray], np.ndarray]  # for rows and cache slots: are their key columns equal?


class FrontStage:
    """H_R with its frequency recorder, and a bounded table of absent keys.

    The table of absent keys is direct-mapped: a key overwrites another one at the same place. It gets only keys that
    the index of R lacks, so a collision of fingerprints never hides a master row.

    Attributes:
        cache: H_R. It has no slots in joins without a front stage.
        recorder: frequencies of cached tuples.
        hits: stream tuples that the cache has matched so far.
        known_absent: stream tuples so far whose key was null or remembered as absent.
    """

    def __init__(  # the sizes of its parts
        self,
        schema: pa.Schema,
        slots: int,
        heap_blocks: int,
        absent_slots: int,
        chunk_rows: int,
        waiting: int = 0,
        hidden: int = 0,
    ) -> None:
        self.cache = TupleCache(schema, slots, heap_blocks, hidden)
        self.recorder = FrequencyRecorder(slots, waiting)
        self.hits = 0
        self.known_absent = 0
        self._absent_keys = np.zeros(max(absent_slots, 1), dtype=np.int64)
        self._absent_used = np.zeros(max(absent_slots, 1), dtype=np.bool_)
        # The output of a probe: rows that hit, their slots, rows that match nothing, rows that miss.
        self._probed = tuple(np.empty(chunk_rows, dtype=np.int64) for _ in range(4))

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a cached tuple takes, without its strings."""
        return TupleCache.bytes_per_slot(schema) + FrequencyRecorder.bytes_per_slot()

    BYTES_PER_ABSENT_KEY = 9
    BYTES_PER_CHUNK_ROW = 32

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        absent = self._absent_keys.nbytes + self._absent_used.nbytes
        return self.cache.nbytes + self.recorder.nbytes + absent + sum(rows.nbytes for rows in self._probed)

    def probe(
        self, chunk: Chunk, room: int, needed: np.ndarray, blocks: int, confirm: Confirm | None
    ) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Probe the cache with stream tuples; stop at the first one that has to wait when there is no room for it.

        CHYBRIDJOIN 2017, algorithm 3.

        Args:
            chunk: the stream tuples, in order.
            room: how many more tuples can wait.
            needed: heap blocks that each tuple takes while it waits; empty if waiting tuples have no strings.
            blocks: free heap blocks.
            confirm: compares the key columns of rows and cache slots; None if 64-bit keys are exact.

        Returns:
            The number of tuples read, the rows of the chunk that hit, their cache slots, the rows that are known to
            match nothing, and the rows that have to wait.
        """
        read, hits, unmatched, misses = _probe(
            chunk.keys,
            chunk.valid,
            room,
            needed,
            blocks,
            confirm is None,
            self.cache.keys,
            self.cache.entries,
            self.recorder.frequency,
            self._absent_keys,
            self._absent_used,
            *self._probed,
        )
        hit_rows, hit_slots, unmatched_rows, miss_rows = self._probed
        rows, slots = hit_rows[:hits], hit_slots[:hits]
        waiting = miss_rows[:misses]
        if confirm is not None and hits:
            same = confirm(rows, slots)
            waiting = np.sort(np.concatenate([waiting, rows[~same]]))
            rows, slots = rows[same], slots[same]
        self.hits += len(rows)
        self.known_absent += unmatched
        if self.cache.slots:
            self.recorder.adapt(read, room=self.cache.has_room())
        return read, rows, slots, unmatched_rows[:unmatched], waiting

    def every_row(
        self, hits: np.ndarray, slots: np.ndarray, confirm: Confirm | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield what `probe` has hit, then the hits whose keys have a second row with its slots, and so on."""
        if not len(self.cache.after):
            yield hits, slots
            return
        for of, further in self.cache.chains(np.arange(len(hits)), slots):
            self.recorder.frequency[further] = self.recorder.frequency[slots[of]]  # the rows of a key are one victim
            same = np.ones(len(of), dtype=np.bool_) if confirm is None else confirm(hits[of], further)
            yield hits[of[same]], further[same]

    def admit_frequent(self, page: Page, matched: np.ndarray) -> None:
        """Cache the page's tuples that matched enough waiting stream tuples.

        CHYBRIDJOIN 2017, algorithm 1, lines 19 to 22.

        Args:
            page: the page in the disk buffer.
            matched: for each match the row of the page; equal rows are adjacent.
        """
        self.admit(page, *self.frequent(matched))

    def frequent(self, matched: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a page that matched enough waiting stream tuples, and how many each has matched."""
        rows, counts = np.empty(len(matched), dtype=np.int64), np.empty(len(matched), dtype=np.int32)
        found = _frequent(matched, self.recorder.threshold, rows, counts)
        return rows[:found], counts[:found]

    def admit(self, page: Page, frequent: np.ndarray, f: np.ndarray) -> None:
        """Cache rows of the page that occurred `f` times, in free slots, or over tuples that are not more frequent."""
        if not len(frequent):
            return
        fresh = self.cache.lacks(page.keys[frequent])
        frequent, f = frequent[fresh], f[fresh]
        if self.cache.has_room():
            slots = self.cache.free_slots(len(frequent))
            frequent, f = frequent[: len(slots)], f[: len(slots)]
        else:
            admitted, slots = self.recorder.victims(f)
            frequent, f = frequent[admitted], f[admitted]
        self.recorder.frequency[slots] = f
        self.cache.put(page, frequent, slots)

    BYTES_TO_RANK = 32  # for each cached row, while the most frequent ones are found

    def most_frequent(self, most: int) -> tuple[Page, np.ndarray]:
        """Return the most frequent cached rows, at most `most`, and the frequency of each."""
        slots = self.cache.used_slots()
        slots = slots[np.argsort(-self.recorder.frequency[slots], kind="stable")[:most]]
        rows = pa.RecordBatch.from_arrays(self.cache.rows.take(slots), schema=self.cache.rows.schema)
        page = Page(0, self.cache.keys[slots], rows, self.cache.rows.identify(slots))
        return page, self.recorder.frequency[slots]

    def remember_absent(self, keys: np.ndarray) -> None:
        """Remember keys that the index of R lacks."""
        _remember(keys, self._absent_keys, self._absent_used)

    def forget_absent(self) -> None:
        """Forget all absent keys, because R may have new rows."""
        self._absent_used[:] = False


@kernel
def _probe(
    keys: np.ndarray,
    valid: np.ndarray,
    room: int,
    needed: np.ndarray,
    blocks: int,
    exact: bool,  # noqa: FBT001
    cache_keys: np.ndarray,
    entries: np.ndarray,
    frequency: np.ndarray,
    absent_keys: np.ndarray,
    absent_used: np.ndarray,
    hit_rows: np.ndarray,
    hit_slots: np.ndarray,
    unmatched_rows: np.ndarray,
    miss_rows: np.ndarray,
) -> tuple[int, int, int, int]:
    hits, unmatched, misses, may_wait = 0, 0, 0, 0
    for i in range(len(keys)):
        if i % AHEAD == 0:
            expect(keys[i : i + AHEAD], cache_keys, entries, frequency)
        if not valid[i]:
            unmatched_rows[unmatched] = i
            unmatched += 1
            continue
        slot = slot_of(keys[i], cache_keys, entries)
        if slot == NONE:
            place = home(tag(mix(keys[i])), len(absent_keys))
            if absent_used[place] and absent_keys[place] == keys[i]:
                unmatched_rows[unmatched] = i
                unmatched += 1
                continue
        if slot == NONE or not exact:
            if may_wait == room or (len(needed) > 0 and needed[i] > blocks):
                return i, hits, unmatched, misses
            may_wait += 1
            if len(needed) > 0:
                blocks -= needed[i]
        if slot == NONE:
            miss_rows[misses] = i
            misses += 1
        else:
            frequency[slot] += 1
            hit_rows[hits] = i
            hit_slots[hits] = slot
            hits += 1
    return len(keys), hits, unmatched, misses


@kernel
def _frequent(matched: np.ndarray, threshold: int, rows: np.ndarray, counts: np.ndarray) -> int:
    """Write the rows with `threshold` or more matches, and the number of these; return how many rows there are."""
    found = 0
    start = 0
    for i in range(1, len(matched) + 1):
        if i == len(matched) or matched[i] != matched[start]:
            if i - start >= threshold:
                rows[found] = matched[start]
                counts[found] = i - start
                found += 1
            start = i
    return found


@kernel
def _remember(keys: np.ndarray, absent_keys: np.ndarray, absent_used: np.ndarray) -> None:
    for key in keys:
        place = home(tag(mix(key)), len(absent_keys))
        absent_keys[place] = key
        absent_used[place] = True
