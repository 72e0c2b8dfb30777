"""What a machine takes for the steps that the cost models count."""

import math
from dataclasses import dataclass, replace

from semistream.modelled_disk import DISK_7200_RPM, OBJECT_STORE, PAGE_CACHE, SSD, ModelledDisk

__all__ = ["DEVICES", "MEASURED_BYTES", "PAPERS", "TODAY", "Machine", "on_this_processor"]

BLOCK_BYTES = 4096  # the least that a disk reads
MEASURED_BYTES, FAR_BYTES, FAR_TIMES = (
    240_000_000,
    12_000_000_000,
    6.0,
)  # a value of the second takes so many times more


@dataclass(frozen=True)
class Machine:
    """The constants of the cost models (MESHJOIN 2007, table 1; HYBRIDJOIN 2011, table 1).

    Attributes:
        disk: what reading from R takes: c_I/O.
        look_up: seconds to look up a row of R in H_S: c_H.
        handle: seconds for a stream tuple: c_S + c_A + c_E + c_O, without the values of its master row.
        output: seconds to output one of these values.
        wait: seconds more for a tuple that waits; the papers' models have none.
        row: seconds to find a single row of R.
        value: seconds to read a value of a row that is found in R, if R has `MEASURED_BYTES`.
        page: seconds for a page beside that.
    """

    disk: ModelledDisk
    look_up: float
    handle: float
    page: float = 0.0
    wait: float = 0.0
    row: float = 0.0
    value: float = 0.0
    output: float = 0.0

    def single_rows_below(self, rows: int, row_bytes: int) -> float:
        """Return how many tuples a partition must serve to be read whole: to find as many single rows takes as long.

        Args:
            rows: of the partition.
            row_bytes: of each.
        """
        disk = self.disk
        partition = disk.seek + rows * (row_bytes / disk.bytes_per_second + self.look_up) + self.page
        return partition / self.row_seconds(row_bytes)

    def row_seconds(self, row_bytes: int) -> float:
        """Return what it takes to find a single row; the disk reads a block for it."""
        disk = self.disk
        return disk.seek + max(row_bytes, BLOCK_BYTES) / disk.bytes_per_second + disk.look_up + self.row

    def value_seconds(self, relation_bytes: int) -> float:
        """Return what it takes to read a value of a row that is found in R, in a page or by itself.

        In a large R the processor also has to look for the address.
        """
        near, far = MEASURED_BYTES, FAR_BYTES
        distance = math.log(min(max(relation_bytes, near), far) / near) / math.log(far / near)
        return self.value * math.pow(FAR_TIMES, distance)


# A machine of the papers' time: a few memory accesses and some objects on a Pentium IV for each step.
PAPERS = Machine(disk=DISK_7200_RPM, look_up=0.5e-6, handle=1e-6)


# A core of a virtual machine, measured by measure.py on 2026-11-20.
TODAY = Machine(
    disk=PAGE_CACHE,
    look_up=3.3e-9,
    handle=20e-9,
    output=7.5e-9,
    wait=95e-9,
    page=11e-6,
    row=50e-9,
    value=12.5e-9,
)

DEVICES = {"page-cache": PAGE_CACHE, "ssd": SSD, "hdd": DISK_7200_RPM, "object-store": OBJECT_STORE}


def on_this_processor(device: str) -> Machine:
    """Return a machine of today with one of the devices."""
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}: choose one of them")
    return replace(TODAY, disk=DEVICES[device])
