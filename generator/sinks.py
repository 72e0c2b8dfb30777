"""The interface of sinks. It imports nothing heavy: a run installs signal handlers before it imports the rest."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from generator.events import Events


class SinkError(RuntimeError):
    """A sink accepts no events; the message says what to do."""


class Stop:
    """A request to end the stream early; the sink still waits for the acknowledgement of events that it has sent.

    It is a plain attribute that a signal handler or another thread sets: with an Event or a lock, a signal handler
    could block forever.

    Args:
        also: returns whether there is another reason to stop.
    """

    def __init__(self, also: Callable[[], bool] = lambda: False) -> None:
        self._flag = False
        self._also = also

    def request(self) -> None:
        """Request the end."""
        self._flag = True

    @property
    def requested(self) -> bool:
        """Whether the end was requested."""
        return self._flag or self._also()


class Sink(Protocol):
    """Where events go; every sink counts sent and acknowledged events in the tally."""

    def write(self, events: "Events") -> None:
        """Write a batch of one event or more."""

    def settle(self) -> None:
        """Check acknowledgements while there is nothing to write."""

    def close(self) -> None:
        """Wait for the acknowledgement of all written events, count them, and close the sink."""
