"""The command line: `python -m generator run` and `python -m generator plot`."""

import argparse
import signal
import sys
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from generator import SettingError, SinkError, Stop, StreamSettings, Target, run_stream
from generator.settings import Drift, Law
from generator.target import SinkKind

_BAD_PARAMETER = 2
_SIMULATED_FROM = "2026-01-01T00:00:00Z"
_LAW_HELP = "integral: the paper's (default); discrete: exactly Zipf's"


def _rate(text: str) -> float | None:
    try:
        return None if text == "max" else float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number of events per second, or max, got {text!r}") from error


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a time such as {_SIMULATED_FROM}, got {text!r}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m generator", description="A self-similar Zipfian stream of sales.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run", help="send a stream", description="Send a stream, and report how many events were acknowledged."
    )
    _add_target(run.add_argument_group("target"))
    _add_values(run.add_argument_group("events"))
    _add_time(run.add_argument_group("time"))
    plot = commands.add_parser(
        "plot", help="draw the stream", description="Draw skew.png and bursts.png: the paper's figures 10 and 11."
    )
    plot.add_argument("--folder", type=Path, default=Path(), help="folder for the pictures (default: the current one)")
    plot.add_argument("--keys", type=int, default=100_000, help="size of the master data (default 100000)")
    plot.add_argument("--exponent", type=float, default=1.0, help="Zipf's exponent (default 1)")
    plot.add_argument("--law", choices=get_args(Law), default="integral", help=_LAW_HELP)
    plot.add_argument("--seed", type=int, default=7, help="selects the random sequence (default 7)")
    plot.add_argument("--rate", type=float, default=20_000.0, help="mean events per second (default 20000)")
    plot.add_argument("--burstiness", type=float, default=2.0, help="peak over mean rate (default 2)")
    plot.add_argument("--sources", type=int, default=12, help="on/off sources (default 12)")
    return parser


def _add_target(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--sink", choices=get_args(SinkKind), required=True, help="json and parquet write a file")
    group.add_argument("--bootstrap", metavar="HOST:PORT", help="Kafka's address")
    group.add_argument("--topic", help="Kafka's topic")
    group.add_argument("--create-topic", action="store_true", help="create the topic if it is missing")
    group.add_argument("--partitions", dest="create_partitions", type=int, metavar="N", help="partitions to create")
    group.add_argument("--path", type=Path, help="the file of sink json or parquet")
    group.add_argument("--processes", type=int, default=1, help="processes that share the stream (default 1)")


def _add_values(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--keys", type=int, required=True, help="size of the master data: product ids are 1..keys")
    group.add_argument("--exponent", type=float, default=1.0, help="Zipf's exponent, 0 is uniform (default 1)")
    group.add_argument("--law", choices=get_args(Law), default="integral", help=_LAW_HELP)
    group.add_argument("--seed", type=int, default=0, help="selects the random sequence (default 0)")
    group.add_argument("--drift", choices=get_args(Drift), default="none", help="how popularity moves between keys")
    group.add_argument("--drift-every", type=int, default=0, metavar="EVENTS", help="events between two changes")
    group.add_argument("--windows", type=int, default=25, help="parts of the key space for --drift windows")
    group.add_argument("--absent", type=float, default=0.0, metavar="SHARE", help="events with an unknown product")
    group.add_argument("--malformed", type=float, default=0.0, metavar="SHARE", help="events that no consumer can read")


def _add_time(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rate", type=_rate, default=None, help="mean events per second, or max (the default)")
    group.add_argument("--events", type=int, help="number of events after which the stream ends")
    group.add_argument("--duration", type=float, metavar="SECONDS", help="seconds after which the stream ends")
    group.add_argument("--burstiness", type=float, default=2.0, help="peak over mean rate; 1 is Poisson (default 2)")
    group.add_argument("--sources", type=int, default=10, help="on/off sources (default 10)")
    group.add_argument("--active", type=float, default=0.0, metavar="SECONDS", help="length of stream between silences")
    group.add_argument("--silent", type=float, default=0.0, metavar="SECONDS", help="length of each silence")
    group.add_argument(
        "--simulate",
        dest="simulated_from",
        type=_moment,
        nargs="?",
        const=_moment(_SIMULATED_FROM),
        metavar="START",
        help=f"do not wait: simulate time, beginning at START (default {_SIMULATED_FROM})",
    )
    group.add_argument(
        "--progress", type=float, default=5.0, metavar="SECONDS", help="time between progress lines (0: none)"
    )


def _given(options: argparse.Namespace, kind: type[StreamSettings | Target]) -> dict[str, Any]:
    """Return the options that are fields of this class."""
    return {field.name: getattr(options, field.name) for field in fields(kind) if hasattr(options, field.name)}


def _target(options: argparse.Namespace) -> Target:
    if options.create_topic != (options.create_partitions is not None):
        raise SettingError(
            f"create-topic and partitions: must be given together, got --partitions {options.create_partitions};"
            " add --create-topic --partitions N to create the topic"
        )
    return Target(**_given(options, Target))


def _plot(options: argparse.Namespace) -> int:
    from generator.plot import check_plot, plot_bursts, plot_skew

    settings = StreamSettings(**_given(options, StreamSettings))
    check_plot(settings)
    options.folder.mkdir(parents=True, exist_ok=True)
    for draw, name in ((plot_skew, "skew.png"), (plot_bursts, "bursts.png")):
        draw(settings, options.folder / name)
        print(options.folder / name)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run(options: argparse.Namespace) -> int:
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.request())
    report = run_stream(
        StreamSettings(**_given(options, StreamSettings)),
        _target(options),
        stop=stop,
        on_progress=_say,
        progress_seconds=options.progress,
    )
    if report.failure:
        _say(f"error: {report.failure}")
    print(report, file=sys.stderr if options.sink == "stdout" else sys.stdout, flush=True)
    return 0 if report.complete else 1


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options) if options.command == "run" else _plot(options)
    except SettingError as error:
        _say(f"error: {error}")
        return _BAD_PARAMETER
    except (SinkError, OSError) as error:
        _say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
