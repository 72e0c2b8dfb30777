"""What a run needs of a sink. Nothing heavy is imported here: a run listens to signals before it imports the rest."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from generator.events import Events


class SinkError(RuntimeError):
    """The sink cannot take events; the message says what to do."""


class Stop:
    """A request to end the stream early, as soon as what was sent is safe.

    A plain flag, set by a signal handler or another thread: waiting for an Event or holding a lock while a signal
    handler sets it could block for ever.
    """

    def __init__(self, also: Callable[[], bool] = lambda: False) -> None:
        self._flag = False
        self._also = also

    def request(self) -> None:
        """Ask for the end."""
        self._flag = True

    @property
    def requested(self) -> bool:
        """Whether the end was asked for."""
        return self._flag or self._also()


class Sink(Protocol):
    """What the run needs of a sink; every sink counts in the tally what it sent and what is acknowledged."""

    def write(self, events: "Events") -> None:
        """Take a batch of one event or more."""

    def settle(self) -> None:
        """Use a free moment to look at acknowledgements."""

    def close(self) -> None:
        """Make everything written safe and count it."""
