"""What has been done, counted where every process and the progress line can see it."""

import ctypes
import time
from collections.abc import Iterable
from dataclasses import dataclass


class Tally(ctypes.Structure):
    """One process' counters, in shared memory. Times are microseconds of the system's monotonic clock."""

    _fields_ = (
        ("sent", ctypes.c_int64),
        ("acknowledged", ctypes.c_int64),
        ("resent", ctypes.c_int64),
        ("waiting_since", ctypes.c_int64),  # when the oldest event that is not sent yet was due; 0 is none
        ("open_since", ctypes.c_int64),  # when the oldest event that is sent and not acknowledged was due; 0 is none
        ("worst_lag", ctypes.c_int64),
        ("cpu", ctypes.c_int64),
    )

    sent: int
    acknowledged: int
    resent: int
    waiting_since: int
    open_since: int
    worst_lag: int
    cpu: int

    def lag(self, now: int) -> int:
        """How far behind its schedule the stream is: the age of the oldest event that is due and not acknowledged."""
        since = self.open_since or self.waiting_since  # what is sent was due before what waits
        return now - since if since else 0

    def note_lag(self, due: int) -> None:
        """Remember the worst lag: what was due then (0: not scheduled) has got on only now."""
        if due:
            self.worst_lag = max(self.worst_lag, now_micros() - due)


def now_micros() -> int:
    """The clock of all times in a tally."""
    return time.monotonic_ns() // 1000


@dataclass(frozen=True)
class Report:
    """One exact report for all processes.

    Attributes:
        sent: Events given to the sink.
        acknowledged: Events the sink has confirmed; each counts once.
        resent: Times an event was sent again because its fate was unknown.
        seconds: From the first event to the last acknowledgement.
        worst_lag: The furthest the stream was behind its schedule, in seconds.
        cpu_seconds: Processor time of all processes, from the first event to the last acknowledgement.
        failure: Why the sink gave up, if it did.
    """

    sent: int
    acknowledged: int
    resent: int
    seconds: float
    worst_lag: float
    cpu_seconds: float
    failure: str | None = None

    @classmethod
    def of(cls, tallies: Iterable[Tally], seconds: float) -> "Report":
        """Add up what the processes counted."""
        tallies = list(tallies)
        return cls(
            sent=sum(tally.sent for tally in tallies),
            acknowledged=sum(tally.acknowledged for tally in tallies),
            resent=sum(tally.resent for tally in tallies),
            seconds=seconds,
            worst_lag=max(tally.worst_lag for tally in tallies) / 1e6,
            cpu_seconds=sum(tally.cpu for tally in tallies) / 1e6,
        )

    @property
    def complete(self) -> bool:
        """Whether everything sent was acknowledged."""
        return self.acknowledged == self.sent and self.failure is None

    def __str__(self) -> str:
        rate = self.acknowledged / self.seconds if self.seconds > 0 else 0.0
        text = (
            f"acknowledged {self.acknowledged} of {self.sent} events in {self.seconds:.2f} s ({rate:,.0f}/s),"
            f" resent {self.resent}, at most {self.worst_lag:.2f} s behind schedule"
        )
        open_events = self.sent - self.acknowledged
        return f"{text}; {open_events} may or may not have arrived" if open_events else text
