"""How many tuples a partition serves, aligned or from the looked-up key: `python -m benchmarks.benchmark_partitions`.

HYBRIDJOIN 2011, equation 2, has w = k h_S d / R_t, and measures k = 1.36 (e = 1). This prints k for R of 2 million rows
in the order of frequency, partitions of d = 125 rows, and five skews. The queue is simulated tuple by tuple: 20 times
h_S tuples arrive first, then as many are counted. A minute on one core.
"""

from semistream.planning import Workload
from semistream.planning.simulated_queue import simulate

ROWS, PARTITION = 2_000_000, 125
WAITING = (300_000, 400_000)
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def k(exponent: float, waiting: int, *, from_key: bool) -> float:
    """Return w R_t / (h_S d), for partitions that can start at any row."""
    workload = Workload.of_the_papers(ROWS, exponent, "frequency")
    its, _ = simulate(workload, 1, PARTITION, waiting, from_key=from_key)
    return its.served * ROWS / (waiting * PARTITION)


def main() -> None:
    """Print the table."""
    print(f"{'partition':24} {'h_S':>8} " + " ".join(f"e={exponent:4.2f}" for exponent in EXPONENTS))
    for from_key in (False, True):
        for waiting in WAITING:
            name = "starts at the key" if from_key else "aligned"
            values = [f"{k(exponent, waiting, from_key=from_key):6.2f}" for exponent in EXPONENTS]
            print(f"{name:24} {waiting:8,} {' '.join(values)}", flush=True)


if __name__ == "__main__":
    main()
