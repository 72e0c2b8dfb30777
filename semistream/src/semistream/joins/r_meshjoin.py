"""R-MESHJOIN (X-HYBRIDJOIN 2013, sections 2 and 5)."""

from typing import ClassVar

from semistream.joins.meshjoin import MeshJoin

__all__ = ["RMeshJoin"]


class RMeshJoin(MeshJoin):
    """MESHJOIN whose queue is not cut into k equal chunks.

    In MESHJOIN h_S is w times k, and a remainder is unused. Here the k chunks share all of H_S: that of a partition is
    as large as its part of R, rounded. H_S fills over a cycle of R, whatever arrives first. h_S can be smaller than k,
    so the size of the disk buffer does not depend on the size of R (X-HYBRIDJOIN 2013, section 2).
    """

    paper_name: ClassVar[str] = "R-MESHJOIN"

    def _chunk_size(self) -> int:
        """Return the partition's share of h_S: all pages have h_S together."""
        partition, pages, slots = self.disk_buffer.partition(self._next_page), self.pages, self.waiting.slots
        share = slots * max(partition.stop, 1) // pages - slots * partition.start // pages
        return share or int(not self.pending)  # an empty window takes one tuple at any page

    @classmethod
    def _least_waiting(cls, k: int) -> int:  # noqa: ARG003 - as in MESHJOIN
        return 1
