"""The settings of a stream. They check every parameter before anything starts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

Law = Literal["integral", "discrete"]
Drift = Literal["none", "steps", "gradual", "windows"]

MAX_KEYS = 2**40
MAX_WINDOWS = 1_000_000  # windows times keys fits into 64 bits
MAX_SOURCES = 30
MAX_EXPONENT = 10
MAX_RATE = 1e9  # at the peak of a burst
MAX_EVENTS = 2**42  # an event id has 42 bits for the number
MAX_SECONDS = 1e9
MAX_BURSTINESS = 1e6

_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class SettingError(ValueError):
    """A parameter breaks its rule; the message has the parameter, the rule, the value and what to do."""


def _require(rule_holds: bool, name: str, rule: str, value: object, hint: str) -> None:  # noqa: FBT001 - it is the rule
    if not rule_holds:
        raise SettingError(f"{name}: {rule}, got {value!r}; {hint}")


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """One stream. The same settings and seed give the same events, whatever the number of processes.

    Attributes:
        keys: Size of the master data's key space; product ids are 1..keys.
        exponent: Zipf's exponent; 0 is uniform.
        law: "integral" is the paper's continuous inverse, "discrete" the exact Zipf law.
        seed: Selects the random sequence.
        rate: Mean events per second while the stream is active; None is as fast as the sink accepts them.
        burstiness: Peak rate over mean rate; 1 is a Poisson stream, 2 the paper's.
        sources: Number of on/off sources; their bandwidths are 2, 4, ... 2^sources.
        active: Seconds of stream between two silences.
        silent: Seconds of silence, without events.
        events: Number of events after which the stream ends.
        duration: Seconds after which the stream ends.
        drift: How popularity moves between keys: "none", "steps", "gradual" or "windows" (see docs/generator.md).
        drift_every: Events between two changes.
        windows: With drift "windows", the number of parts of the key space; the stream visits one after the other.
        absent: Share of events whose key is not in the master data (product ids above `keys`).
        malformed: Share of events that no consumer can read.
        simulated_from: Start of simulated time, which passes without waiting; None is real time.
    """

    keys: int
    exponent: float = 1.0
    law: Law = "integral"
    seed: int = 0
    rate: float | None = None
    burstiness: float = 2.0
    sources: int = 10
    active: float = 0.0
    silent: float = 0.0
    events: int | None = None
    duration: float | None = None
    drift: Drift = "none"
    drift_every: int = 0
    windows: int = 25
    absent: float = 0.0
    malformed: float = 0.0
    simulated_from: datetime | None = None

    def __post_init__(self) -> None:
        self._check_values()
        self._check_drift()
        self._check_time()

    def _check_values(self) -> None:
        _require(1 <= self.keys <= MAX_KEYS, "keys", f"must be 1 to {MAX_KEYS}", self.keys, "the master data's size")
        rule = f"must be 0 to {MAX_EXPONENT}"
        _require(0 <= self.exponent <= MAX_EXPONENT, "exponent", rule, self.exponent, "1 is the paper's, 0 uniform")
        _require(self.law in get_args(Law), "law", f"must be one of {get_args(Law)}", self.law, "see docs/generator.md")
        _require(0 <= self.seed < 2**63, "seed", "must be 0 to 2^63-1", self.seed, "any number will do")
        for name in ("absent", "malformed"):
            share = getattr(self, name)
            _require(0 <= share <= 1, name, "must be a share of 0 to 1", share, "0.01 is one event in a hundred")

    def _check_drift(self) -> None:
        drifts = self.drift != "none"
        _require(self.drift in get_args(Drift), "drift", f"must be one of {get_args(Drift)}", self.drift, "choose one")
        _require(
            1 <= self.drift_every <= MAX_EVENTS if drifts else self.drift_every == 0,
            "drift_every",
            f"must be the number of events (1 to {MAX_EVENTS}) between changes when drift is asked for, else 0",
            self.drift_every,
            f"drift is {self.drift!r}",
        )
        if self.drift == "windows":
            most = min(self.keys, MAX_WINDOWS)
            _require(1 <= self.windows <= most, "windows", f"must be 1 to {most}", self.windows, "the paper has 25")

    def _check_time(self) -> None:
        rate, hint = self.rate, "leave it out for as fast as possible"
        _require(rate is None or 0 <= rate <= MAX_RATE, "rate", f"must be 0 to {MAX_RATE:.0f} events/s", rate, hint)
        rule = f"must be 1 (Poisson) to {MAX_BURSTINESS:.0f}: peak rate over mean rate"
        _require(1 <= self.burstiness <= MAX_BURSTINESS, "burstiness", rule, self.burstiness, "2 is the paper's")
        peak = (rate or 0) * self.burstiness
        rule = f"together must make a peak of at most {MAX_RATE:.0f} events/s"
        _require(peak <= MAX_RATE, "rate times burstiness", rule, peak, "lower one of them")
        rule = f"must be 1 to {MAX_SOURCES}"
        _require(1 <= self.sources <= MAX_SOURCES, "sources", rule, self.sources, "10 is the paper's")
        for name, other in (("active", "silent"), ("silent", "active")):
            seconds = getattr(self, name)
            rule = f"must be 0 to {MAX_SECONDS:.0f} seconds, and more than 0 together with {other}"
            fits = 0 <= seconds <= MAX_SECONDS and (seconds > 0) == (getattr(self, other) > 0)
            _require(fits, name, rule, seconds, f"give both or none of {name} and {other}")
        for name, most in (("events", MAX_EVENTS), ("duration", MAX_SECONDS)):
            limit = getattr(self, name)
            rule = f"must be 0 to {most:.0f}"
            _require(limit is None or 0 <= limit <= most, name, rule, limit, "leave it out for no limit")
        if self.simulated_from is not None:
            self._check_simulation(self.simulated_from)

    def _check_simulation(self, start: datetime) -> None:
        _require(self.rate is not None, "rate", "must be a number in simulated time", "max", "time advances by it")
        _require(start.tzinfo is not None, "simulated_from", "must carry a time zone", str(start), "add Z for UTC")
        limited = self.duration is not None or (self.events is not None and self.rate != 0)
        _require(limited, "duration or events", "must limit a simulated stream", None, "give one of them")
        seconds = self._longest_seconds()
        fits = start >= _FIRST_MOMENT and seconds <= (_LAST_MOMENT - start).total_seconds()
        rule = f"must be 1970 or later and leave {seconds:.0f} seconds of stream before the end of 9999"
        _require(fits, "simulated_from", rule, str(start), "choose a date of our time, or a shorter stream")

    def _longest_seconds(self) -> float:
        """Return the longest time that a limited stream takes, at half the mean rate and with one long pause."""
        limits = [] if self.duration is None else [self.duration]
        if self.events is not None and self.rate:
            share = self.active / (self.active + self.silent) if self.active else 1.0
            pause = 2.0**self.sources * 0.04 if self.burstiness > 1 else 0.0
            limits.append(2.0 * self.events / (self.rate * share) + pause + self.silent)
        return min(limits)

    def simulated_start_ms(self) -> int:
        """Return the start of simulated time, in milliseconds since 1970."""
        moment = self.simulated_from or datetime.fromtimestamp(0, UTC)
        return round(moment.timestamp() * 1000)
