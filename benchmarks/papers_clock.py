"""The clock of the papers' benchmark: seconds on a machine of their time, from exact counts.

The disk is a 7200 rpm disk. For the processor the clock counts the costs of the papers' cost models in which the
algorithms differ: c_H, to look a tuple of R up in H_S, and c_S + c_A + c_E + c_O, to handle a stream tuple. The papers
name these four and give no values, so each is a quarter: to read the tuple from the stream buffer, to add it to H_S and
Q, to remove it from there, and to output it. A tuple that is shed unread costs a read. A tuple that is shed from the
queue costs all but the output. A replayed tuple costs the same as one that comes first. Each shed file costs a seek and
its bytes when it is written, and again when it is read.
"""

from pathlib import Path

import pyarrow as pa
from semistream.joins import CHybridJoin, SemiStreamJoin
from semistream.load_shedder import UpfrontShedder
from semistream.modelled_disk import DISK_7200_RPM, ModelledDisk
from semistream.relation.base import Counters
from semistream.shed_store import ShedStore

LOOK_UP = 0.5e-6  # c_H, seconds: a few memory accesses and some objects on a Pentium IV
READ = ADD = REMOVE = OUTPUT = 0.25e-6  # c_S, c_A, c_E, c_O, seconds


class CountedStore(ShedStore):
    """Shed files on the modelled disk.

    Attributes:
        counters: the files that were written or read, as if both were reads.
    """

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        super().__init__(directory, schema)
        self.counters = Counters()
        self._path = directory

    def add(self, tuples: pa.RecordBatch) -> None:
        """Store tuples in a file."""
        super().add(tuples)
        self._count(self.names[-1])

    def read(self, name: str) -> pa.RecordBatch:
        """Read the tuples of a file."""
        self._count(name)
        return super().read(name)

    def _count(self, name: str) -> None:
        self.counters.seeks += 1
        self.counters.bytes_read += (self._path / name).stat().st_size


def seconds(join: SemiStreamJoin, on: ModelledDisk = DISK_7200_RPM) -> float:
    """Read the clock of a join, whose R and shed files are on a disk."""
    tuples = join.stream_buffer.arrived * (READ + ADD + REMOVE + OUTPUT)
    disk = on.seconds(join.relation.counters)
    if isinstance(join, CHybridJoin) and join.shedder is not None:
        shedder = join.shedder
        tuples -= shedder.shed * (ADD + REMOVE + OUTPUT if isinstance(shedder, UpfrontShedder) else OUTPUT)
        if isinstance(shedder.store, CountedStore):
            disk += on.seconds(shedder.store.counters)
    return disk + join.probed * LOOK_UP + tuples
