"""How long a tuple takes: its processing time in the join, and its waiting time in the stream buffer before that.

HYBRIDJOIN 2011, section 3, names them. The processing time is that from loading to matching, at any rate of arrivals:
`Prediction.processing_seconds` has its mean. Here are its other percentiles, and the waiting time.
"""

import math

from semistream.planning.predict import Prediction

__all__ = ["processing_percentile", "waiting_seconds"]


def processing_percentile(found: Prediction, part: float) -> float:
    """Return the processing time that this part of all stream tuples does not exceed.

    Tuples that meet their row in memory take no time. A page's first tuple waits for the longest time T. Those that
    come while it waits are spread evenly over T; their part u of the tuples that wait follows from the mean,
    T (1 - u / 2). In X-HYBRIDJOIN tuples for kept rows leave before: there the mean can be less than T / 2, and all
    are spread over twice the mean.
    All are spread evenly in MESHJOIN (u = 1), and none is in INLJ (u = 0).
    """
    if part <= found.in_memory:
        return 0.0
    waits = 1 - found.in_memory
    mean = found.processing_seconds / waits
    spread = 2 * (1 - mean / found.longest_seconds)
    before = (part - found.in_memory) / waits
    if spread > 1:
        return before * 2 * mean
    return found.longest_seconds * (before / spread if before < spread else 1.0)


def waiting_seconds(found: Prediction, arrivals: float) -> float:
    """Return w / lambda, the waiting time at this many tuples a second; without end if more arrive than are joined.

    HYBRIDJOIN 2011, section 3: an iteration begins when w tuples have arrived. The joins of this library read what has
    arrived when the iteration before is over. So their tuples wait for less at half of the service rate; near the
    service rate an iteration that takes longer than the others makes a queue, which the equation does not know.
    """
    return found.tuples / arrivals if arrivals <= found.rate else math.inf
