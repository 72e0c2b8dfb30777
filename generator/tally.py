"""Counters in shared memory, and the report that adds them up."""

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
        ("waiting_since", ctypes.c_int64),  # due time of the oldest event that is not sent; 0 is none
        ("open_since", ctypes.c_int64),  # due time of the oldest event that is sent and not acknowledged; 0 is none
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
        """Return the lag behind schedule: how long the oldest event without acknowledgement has been due."""
        since = self.open_since or self.waiting_since  # an event that is sent was due before one that is not
        return now - since if since else 0

    def note_lag(self, due: int) -> None:
        """Update the worst lag with an event that was due at `due` (0: no schedule) and is sent or acknowledged now."""
        if due:
            self.worst_lag = max(self.worst_lag, now_micros() - due)


def now_micros() -> int:
    """Return the microseconds of the monotonic clock that all tallies use."""
    return time.monotonic_ns() // 1000


@dataclass(frozen=True)
class Report:
    """The exact counts of a run, summed over its processes.

    Attributes:
        sent: Events given to the sink.
        acknowledged: Events that the sink has confirmed; each counts once.
        resent: Events sent again because it was unknown whether the broker had them; each resend counts.
        seconds: From the first event to the last acknowledgement.
        worst_lag: The longest lag behind schedule, in seconds.
        cpu_seconds: Processor time of all processes, from the first event to the last acknowledgement.
        failure: Why the run failed, or None.
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
        """Add up the counters of the processes."""
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
        """Whether every sent event was acknowledged."""
        return self.acknowledged == self.sent and self.failure is None

    def __str__(self) -> str:
        rate = self.acknowledged / self.seconds if self.seconds > 0 else 0.0
        text = (
            f"acknowledged {self.acknowledged} of {self.sent} events in {self.seconds:.2f} s ({rate:,.0f}/s),"
            f" resent {self.resent}, at most {self.worst_lag:.2f} s behind schedule"
        )
        open_events = self.sent - self.acknowledged
        return f"{text}; {open_events} may or may not have arrived" if open_events else text
