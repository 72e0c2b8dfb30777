"""R-MESHJOIN, the baseline of 002 section 5."""

from semistream.joins.meshjoin import MeshJoin


class RMeshJoin(MeshJoin):
    """MESHJOIN whose queue is not cut into k equal chunks.

    MESHJOIN ties the size of its chunks to the number of pages: h_S is w times k, and what does not divide is left
    unused. Here an iteration reads as many tuples as the last one made room for, so that H_S is used in full and may
    be smaller than k, and the size of the disk buffer no longer depends on that of R (002 section 2).
    """

    def _chunk_size(self) -> int:
        return self.waiting.slots

    def _least_waiting(self) -> int:
        return 1
