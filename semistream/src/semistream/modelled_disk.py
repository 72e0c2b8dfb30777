"""A disk's clock, computed from what was read: the same on every machine, so that ratios can be asserted."""

from dataclasses import dataclass

from semistream.relation.base import Counters


@dataclass(frozen=True)
class ModelledDisk:
    """Cost of reading: c_I/O(b) of 004 section 3.2 as seek and transfer.

    Attributes:
        seek: seconds to begin a read that does not follow the one before.
        bytes_per_second: transfer rate of a read under way.
        look_up: seconds to find a key's page in the index.
    """

    seek: float
    bytes_per_second: float
    look_up: float

    def seconds(self, counters: Counters) -> float:
        """Tell how long the disk took for what was counted."""
        return (
            counters.seeks * self.seek + counters.bytes_read / self.bytes_per_second + counters.look_ups * self.look_up
        )


# A 7200 rpm disk of the papers' years: 8.5 ms mean seek, half a turn of 4.2 ms, 60 MB/s. The inner levels of the
# index are in memory and its leaves beside the rows, so that a look-up costs no seek of its own.
DISK_7200_RPM = ModelledDisk(seek=12.7e-3, bytes_per_second=60e6, look_up=10e-6)
SSD = ModelledDisk(seek=80e-6, bytes_per_second=500e6, look_up=10e-6)
OBJECT_STORE = ModelledDisk(seek=30e-3, bytes_per_second=90e6, look_up=10e-6)
