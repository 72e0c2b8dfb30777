"""R-MESHJOIN (X-HYBRIDJOIN 2013, sections 2 and 5)."""

from typing import ClassVar

from semistream.joins.meshjoin import MeshJoin

__all__ = ["RMeshJoin"]


class RMeshJoin(MeshJoin):
    """MESHJOIN whose queue is not cut into k equal chunks.

    In MESHJOIN h_S is w times k, and a remainder is unused. Here an iteration reads as many tuples as the last one made
    room for. So all of H_S is used, h_S can be smaller than k, and the size of the disk buffer does not depend on the
    size of R (X-HYBRIDJOIN 2013, section 2).
    """

    paper_name: ClassVar[str] = "R-MESHJOIN"

    def _chunk_size(self) -> int:
        return self.waiting.slots

    @classmethod
    def _least_waiting(cls, k: int) -> int:  # noqa: ARG003 - as in MESHJOIN
        return 1
