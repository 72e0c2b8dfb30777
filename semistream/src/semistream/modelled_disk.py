"""The time that a disk would take, computed from exact counts, so that every machine gets the same ratios."""

import math
from dataclasses import dataclass

from semistream.relation.base import Counters

__all__ = ["DISK_7200_RPM", "OBJECT_STORE", "PAGE_CACHE", "SSD", "ModelledDisk"]


@dataclass(frozen=True)
class ModelledDisk:
    """The cost of reading: c_I/O(b) of MESHJOIN 2007, section 3.2, as seek and transfer.

    Attributes:
        seek: seconds to start a read that does not continue the previous one.
        bytes_per_second: transfer rate.
        look_up: seconds to find a key's page in the index.
    """

    seek: float
    bytes_per_second: float
    look_up: float

    def seconds(self, counters: Counters) -> float:
        """Return the seconds that the disk takes for the counted reads and look-ups."""
        return (
            counters.seeks * self.seek + counters.bytes_read / self.bytes_per_second + counters.look_ups * self.look_up
        )


# A 7200 rpm disk of the papers' years: 8.5 ms mean seek, 4.2 ms for half a turn, 60 MB/s. The inner levels of the
# index are in memory and its leaves lie beside the rows, so a look-up needs no seek of its own.
DISK_7200_RPM = ModelledDisk(seek=12.7e-3, bytes_per_second=60e6, look_up=10e-6)
SSD = ModelledDisk(seek=80e-6, bytes_per_second=500e6, look_up=10e-6)
OBJECT_STORE = ModelledDisk(seek=30e-3, bytes_per_second=100e6, look_up=10e-6)
PAGE_CACHE = ModelledDisk(seek=0.0, bytes_per_second=math.inf, look_up=0.0)  # a mapped file that is in memory
