"""Decides when shed tuples are replayed, and how many, so that they are not shed again at once.

CHYBRIDJOIN 2017, algorithm 2, sheds above 2w tuples in the stream buffer and replays below. With one limit for both,
the tuples that a replay puts into the join make it shed the next ones.
"""

__all__ = ["ReplayPace"]

_PATIENCE = 16
_SPARE = 1.5  # bursts for which a replay leaves room: the next one can be larger than those before


class ReplayPace:
    """Replays only after a time of low load, and only into room that the stream has not needed in that time.

    Load is low in an iteration that lets every tuple of the stream buffer into H_S. A stream that comes in batches has
    low load between two batches. So a shed soon after a replay doubles the time to wait for.

    Attributes:
        patience: iterations of low load before tuples are replayed.
    """

    def __init__(self) -> None:
        self.patience = _PATIENCE
        self._calm = 0  # iterations of low load so far
        self._burst = 0.0  # the most tuples that came in one iteration; older ones fade
        self._since_replay = self.patience

    def note_shed(self) -> None:
        """Note that tuples were shed: the load is high."""
        if self._since_replay < self.patience:
            self.patience *= 2
        self._since_replay = self.patience
        self._calm = 0

    def note_replay(self) -> None:
        """Note that tuples were replayed."""
        self._since_replay = 0

    def room(self, free: int, entering: int, *, idle: bool) -> int:
        """Return how many tuples this iteration may replay.

        Args:
            free: free slots of H_S.
            entering: tuples of the stream buffer that are expected to enter H_S.
            idle: no tuple is in the stream buffer or in H_S.
        """
        self._since_replay += 1
        self._burst = max(float(entering), self._burst * (1 - 1 / self.patience))
        self._calm = self._calm + 1 if entering < free else 0
        if idle:
            return free
        return max(0, free - entering - int(_SPARE * self._burst)) if self._calm >= self.patience else 0
