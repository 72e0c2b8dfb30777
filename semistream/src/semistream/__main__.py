"""`python -m semistream explain`: plan a join for a size of R, a memory, a skew and a device.

`python -m semistream measure` measures the constants of this machine for it.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

from semistream.planning.explain import as_json, as_text
from semistream.planning.machine import DEVICES, PAPERS, Machine, on_this_processor
from semistream.planning.measure import measure, read_machine
from semistream.planning.plot import draw
from semistream.planning.tuner import Goal, NoPlanError, best_of_each, least_memory
from semistream.planning.workload import Workload

__all__ = ["UNITS", "arrivals", "machine_of", "main", "parser", "size"]

UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}


def size(text: str) -> int:
    """Read a number of bytes such as 24MB."""
    number, unit = (text[:-2], text[-2:].upper()) if text[-2:].upper() in UNITS else (text, "")
    try:
        found = round(float(number) * UNITS.get(unit, 1))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number of bytes such as 24MB, got {text!r}") from None
    if found < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 byte, got {text!r}")
    return found


def arrivals(text: str) -> float:
    """Read a rate of arrivals."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"must be tuples a second, more than 0, got {text!r}")
    return found


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m semistream", description=__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="measure this machine's constants, for `explain --machine`")
    measuring.add_argument("--file", type=Path, default=Path("machine.json"), help="(default: %(default)s)")
    explain = commands.add_parser("explain", help="print each join's best plan, and the choice with its reason")
    explain.add_argument("--rows", type=int, default=2_000_000, help="rows of R (default: %(default)s)")
    explain.add_argument("--row-bytes", type=int, default=120, help="bytes of a row of R (default: %(default)s)")
    explain.add_argument("--memory", type=size, default="24MB", help="bytes for the join (default: %(default)s)")
    explain.add_argument("--exponent", type=float, default=1.0, help="Zipf's exponent of the stream: 0 is uniform")
    explain.add_argument("--order", choices=("frequency", "none"), default="frequency", help="the order of R")
    explain.add_argument("--device", choices=tuple(DEVICES), help="what R is on (default: ssd)")
    explain.add_argument("--papers", action="store_true", help="the machine and disk of the papers' time")
    explain.add_argument("--machine", type=Path, help="a file that `measure` wrote")
    explain.add_argument("--page-rows", type=int, help="rows of a page, if they are given")
    explain.add_argument("--longest-wait", type=float, help="the longest processing time of a tuple, in seconds")
    explain.add_argument("--arrivals", type=arrivals, help="tuples that arrive a second, for the waiting time")
    explain.add_argument("--rate", type=float, help="find the least memory for this many tuples a second")
    explain.add_argument("--plot", type=Path, help="also draw the rates in a picture, for example plan.png")
    explain.add_argument("--json", action="store_true", help="print JSON")
    return made


def machine_of(asked: argparse.Namespace) -> Machine:
    """Return the machine to plan for; raise ValueError if two are named."""
    if asked.papers and (asked.device or asked.machine):
        other = f"--device {asked.device}" if asked.device else f"--machine {asked.machine}"
        raise ValueError(f"--papers must stand alone, as it has its own device, got also {other}: leave one out")
    device = asked.device or "ssd"
    if asked.papers:
        return PAPERS
    return read_machine(asked.machine, device) if asked.machine else on_this_processor(device)


def main(arguments: list[str] | None = None) -> None:
    """Run one command."""
    asked = parser().parse_args(arguments)
    if asked.command == "measure":
        found_here = measure()
        found_here.write(asked.file)
        print(f"{asked.file}: {found_here}")
        return
    try:
        goal = Goal(asked.longest_wait)
        machine = machine_of(asked)
        workload = Workload.of_the_papers(asked.rows, asked.exponent, asked.order, asked.row_bytes)
        workload = replace(workload, reads_rows=not asked.papers)
        memory = asked.memory
        if asked.rate is not None:
            memory = least_memory(workload, asked.rate, machine, page_rows=asked.page_rows, goal=goal).plan.memory
        found = best_of_each(workload, memory, machine, page_rows=asked.page_rows, goal=goal)
        if not found:
            raise NoPlanError(f"memory must be enough for one join, got {memory} bytes: give it more, or a longer wait")
        if asked.plot:
            figure = draw(found, workload, memory, machine, page_rows=asked.page_rows, goal=goal)
            figure.savefig(asked.plot, dpi=120)
    except (ValueError, OSError) as error:
        sys.exit(f"semistream explain: {error}")
    if asked.json:
        print(json.dumps(as_json(found, workload, memory, arrivals=asked.arrivals), indent=2))
    else:
        print(as_text(found, workload, memory, arrivals=asked.arrivals))


if __name__ == "__main__":
    main()
