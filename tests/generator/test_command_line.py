"""The command line: sinks, errors before anything starts, reports, signals."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from generator.__main__ import main
from generator.events import SCHEMA

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "generator"]

Done = subprocess.CompletedProcess[bytes]


def run(*arguments: str | Path) -> Done:
    """Run the command to its end, in a process of its own."""
    return subprocess.run([*COMMAND, *map(str, arguments)], cwd=ROOT, capture_output=True, check=False, timeout=60)


@pytest.fixture
def run_here(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Callable[..., Done]]:
    """Run the command to its end in this process, which saves its start; later undo what it leaves in the process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run_here(*arguments: str | Path) -> Done:
        code = main([str(argument) for argument in arguments])
        printed = capsysbinary.readouterr()
        return subprocess.CompletedProcess(arguments, code, printed.out, printed.err)

    yield run_here
    for number, handler in handlers.items():
        signal.signal(number, handler)
    gc.unfreeze()


def acknowledged(output: bytes) -> int:
    """Return the number of acknowledged events in the exit line."""
    found = re.search(rb"^acknowledged (\d+) of \d+ events", output, re.MULTILINE)
    assert found, output
    return int(found[1])


def test_json_file_holds_the_acknowledged_events(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """The JSON file has one line for each acknowledged event."""
    path = tmp_path / "events.json"
    done = run_here("run", "--sink", "json", "--path", path, "--keys", "100", "--events", "70000")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert done.returncode == 0
    assert len(events) == acknowledged(done.stdout) == 70_000
    assert all(1 <= event["product_id"] <= 100 for event in events)


def test_a_simulated_hour_takes_seconds_and_can_be_repeated(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """A simulated hour runs in seconds; the same seed gives the same bytes, another seed others."""
    hour = ["run", "--sink", "json", "--keys", "1000", "--rate", "100", "--duration", "3600", "--simulate"]
    texts = []
    for index, seed in enumerate(("1", "1", "2")):
        path = tmp_path / f"{index}.json"
        began = time.monotonic()
        assert run_here(*hour, "--seed", seed, "--path", path).returncode == 0
        assert time.monotonic() - began < 30
        texts.append(path.read_bytes())
    assert texts[0] == texts[1] != texts[2]
    times = [json.loads(line)["sold_at"] for line in texts[0].splitlines()]
    assert times == sorted(times)
    assert times[0].startswith("2026-01-01T00:00")
    assert times[-1].startswith("2026-01-01T00:59:5")


def test_parquet_file_holds_the_acknowledged_events(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """The Parquet file has each acknowledged event, in the columns of the schema."""
    path = tmp_path / "events.parquet"
    done = run_here("run", "--sink", "parquet", "--path", path, "--keys", "100", "--events", "70000")
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == acknowledged(done.stdout) == 70_000
    assert table["event_id"].combine_chunks().unique().__len__() == 70_000


def test_standard_output_carries_events_only() -> None:
    """Standard output is JSON to the last line; the report goes to standard error."""
    done = run("run", "--sink", "stdout", "--keys", "100", "--events", "1000")
    assert all(list(json.loads(line)) == SCHEMA.names for line in done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == acknowledged(done.stderr) == 1000
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_several_processes_have_one_report() -> None:
    """A run of three processes reports one line, with the exact sum of their counts."""
    done = run("run", "--sink", "none", "--keys", "100", "--events", "1000001", "--processes", "3")
    assert acknowledged(done.stdout) == 1_000_001
    assert done.stdout.count(b"\n") == 1


def test_a_paced_stream_keeps_its_schedule_and_reports_progress(run_here: Callable[..., Done]) -> None:
    """A second at 3000 events a second takes a second; progress lines have rate, counts and lag."""
    pace = ["--rate", "3000", "--burstiness", "1", "--duration", "1", "--progress", "0.25"]
    began = time.monotonic()
    done = run_here("run", "--sink", "none", "--keys", "100", *pace)
    assert time.monotonic() - began > 1
    assert acknowledged(done.stdout) == pytest.approx(3000, rel=0.06)
    line = done.stderr.splitlines()[1].decode()
    assert re.fullmatch(r" *[\d.]+ s  [\d,]+/s  sent [\d,]+  acknowledged [\d,]+  behind schedule [\d.]+ s", line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [1, 2])
def test_signal_ends_the_stream_with_an_exact_report(tmp_path: Path, number: signal.Signals, processes: int) -> None:
    """Ctrl-C and SIGTERM end an endless stream; the report is what the file holds."""
    path = tmp_path / "events.json"
    sink = ["--sink", "json", "--path", str(path)] if processes == 1 else ["--sink", "none", "--processes", "2"]
    options = ["--keys", "100", "--rate", "2000", "--progress", "0.1"]
    with subprocess.Popen(
        [*COMMAND, "run", *sink, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"acknowledged 0 " in process.stderr.readline():
            pass
        process.send_signal(number)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert acknowledged(output) > 0
    if processes == 1:
        assert acknowledged(output) == len(path.read_bytes().splitlines())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", ["imports", "children"])
def test_signal_during_the_start_ends_the_run_with_success(number: signal.Signals, phase: str) -> None:
    """A signal to the process group before the first event ends the run with success and no traceback."""
    endless = ["--sink", "none", "--processes", "2", "--keys", "100", "--rate", "1000", "--progress", "0"]
    with subprocess.Popen(
        [*COMMAND, "run", *endless], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        if phase == "imports":
            while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
                assert process.poll() is None
        else:
            children = psutil.Process(process.pid).children
            while not any("spawn_main" in " ".join(child.cmdline()) for child in children()):
                assert process.poll() is None
        os.killpg(process.pid, number)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, b"")
    assert acknowledged(output) == 0


@pytest.mark.parametrize("sink", ["json", "parquet"])
def test_full_disk_is_one_line_and_nothing_is_acknowledged(sink: str) -> None:
    """When the disk takes no byte, the error is one line with the path, and no event counts as acknowledged."""
    done = run("run", "--sink", sink, "--path", "/dev/full", "--keys", "10", "--events", "5")
    assert done.returncode == 1
    assert re.fullmatch(rb"error: path: /dev/full cannot be written \(.*No space left on device.*\);.*\n", done.stderr)
    assert acknowledged(done.stdout) == 0


@pytest.mark.parametrize(("sink", "safe"), [("json", 65_536), ("parquet", 0)])
@pytest.mark.parametrize("events", [131_072, 300_000])
def test_file_that_fills_up_counts_only_what_is_safe(tmp_path: Path, sink: str, safe: int, events: int) -> None:
    """When a later write fails, JSON lines before it count as acknowledged; Parquet rows without the footer do not."""
    path = tmp_path / "events"
    most = 12_000_000 if sink == "json" else 300_000  # room for one batch, not for two
    limit = ["prlimit", f"--fsize={most}"]
    make = ["run", "--sink", sink, "--path", str(path), "--keys", "10", "--events", str(events)]
    done = subprocess.run([*limit, *COMMAND, *make], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: path: %b cannot be written (" % bytes(path))
    assert acknowledged(done.stdout) == safe
    assert b"; 65536 may or may not have arrived" in done.stdout or sink == "parquet"


def test_parquet_file_has_large_row_groups(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """Small batches are collected into large row groups, and a long stream is written group by group."""
    for name, pace, groups in (
        ("paced", ["--rate", "2000", "--duration", "0.5"], 1),
        ("fast", ["--events", "200000"], 4),
    ):
        path = tmp_path / name
        assert run_here("run", "--sink", "parquet", "--path", path, "--keys", "100", *pace).returncode == 0
        assert pq.ParquetFile(path).num_row_groups == groups


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--keys", "0"], "keys"),
        (["--keys", "10", "--exponent", "-1"], "exponent"),
        (["--keys", "10", "--seed", "-1"], "seed"),
        (["--keys", "10", "--rate", "-5"], "rate"),
        (["--keys", "10", "--rate", "nan"], "rate"),
        (["--keys", "10", "--burstiness", "0.5"], "burstiness"),
        (["--keys", "10", "--sources", "0"], "sources"),
        (["--keys", "10", "--active", "5"], "silent"),
        (["--keys", "10", "--events", "-1"], "events"),
        (["--keys", "10", "--duration", "-1"], "duration"),
        (["--keys", "10", "--drift", "steps"], "drift_every"),
        (["--keys", "10", "--drift-every", "5"], "drift_every"),
        (["--keys", "10", "--drift", "windows", "--drift-every", "5", "--windows", "11"], "windows"),
        (["--keys", "10", "--drift-every", "-5"], "drift_every"),
        (["--keys", "10", "--drift", "steps", "--drift-every", str(2**42 + 1)], "drift_every"),
        (["--keys", str(2**40 + 1)], "keys"),
        (["--keys", "10", "--exponent", "10.1"], "exponent"),
        (["--keys", "10", "--seed", str(2**63)], "seed"),
        (["--keys", "10", "--rate", "1000000001", "--burstiness", "1"], "rate"),
        (["--keys", "10", "--burstiness", "1000001"], "burstiness"),
        (["--keys", "10", "--rate", "500000001"], "rate times burstiness"),
        (["--keys", "10", "--sources", "31"], "sources"),
        (["--keys", "10", "--active", "inf", "--silent", "1"], "active"),
        (["--keys", "10", "--events", str(2**42 + 1)], "events"),
        (["--keys", "10", "--rate", "100", "--duration", "inf"], "duration"),
        (["--keys", "10", "--progress", "inf"], "progress"),
        (["--keys", "10", "--progress", "-1"], "progress"),
        (["--keys", "10", "--progress", "nan"], "progress"),
        (["--keys", "10", "--simulate", "1969-12-31T23:59:59Z", "--rate", "5", "--events", "1"], "simulated_from"),
        (["--keys", "10", "--simulate", "9999-12-31T23:00:00Z", "--rate", "5", "--duration", "3600"], "simulated_from"),
        (["--keys", "10", "--simulate", "--rate", "0.000001", "--events", "1000000"], "simulated_from"),
        (["--keys", "10", "--absent", "1.5"], "absent"),
        (["--keys", "10", "--malformed", "-0.1"], "malformed"),
        (["--keys", "10", "--simulate", "--events", "5"], "rate"),
        (["--keys", "10", "--simulate", "--rate", "5"], "duration or events"),
        (["--keys", "10", "--simulate", "2026-01-01T00:00:00", "--rate", "5", "--events", "1"], "simulated_from"),
        (["--keys", "10", "--processes", "2"], "processes"),
        (["--keys", "10", "--topic", "sales"], "topic"),
        (["--keys", "10", "--create-topic"], "partitions"),
        (["--keys", "10", "--create-topic", "--partitions", "2"], "partitions"),
    ],
)
def test_bad_parameter_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], names: str
) -> None:
    """One line states the bad parameter and its rule; no file is created."""
    path = tmp_path / "events.json"
    limit = [] if "--simulate" in options else ["--events", "5"]  # a parameter that passes must not run forever
    assert main(["run", "--sink", "json", "--path", str(path), *limit, *options]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert names in message.split(":")[1] or names in message.split(":")[2]
    assert message.count("\n") == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--bootstrap", "host:abc"], "bootstrap"),
        (["--bootstrap", "host"], "bootstrap"),
        (["--bootstrap", "host:65536"], "bootstrap"),
        (["--topic", "a b"], "topic"),
        (["--topic", ".."], "topic"),
        (["--processes", "257"], "processes"),
        (["--create-topic", "--partitions", "10001"], "partitions"),
    ],
)
def test_bad_kafka_parameter_is_named_before_anything_starts(
    capsys: pytest.CaptureFixture[str], options: list[str], name: str
) -> None:
    """The check reports a bad Kafka parameter before it connects: no broker listens at the address."""
    kafka = ["--sink", "kafka", "--bootstrap", "127.0.0.1:9", "--topic", "sales"]
    assert main(["run", *kafka, "--keys", "10", "--events", "5", *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: {name}: must be")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "abc"], "argument --rate: must be a number of events per second, or max, got 'abc'"),
        (["--simulate", "soon"], "argument --simulate: must be a time such as 2026-01-01T00:00:00Z, got 'soon'"),
    ],
)
def test_an_option_that_cannot_be_parsed_is_one_message(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    """The message states the option and its rule, without names of functions."""
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--sink", "none", "--keys", "10", *options])
    assert message in capsys.readouterr().err


def test_a_killed_process_ends_the_run_with_an_error() -> None:
    """When one of several processes dies, the others end; the error has its exit code."""
    endless = ["--sink", "none", "--processes", "2", "--keys", "100", "--rate", "1000", "--progress", "0.1"]
    with subprocess.Popen([*COMMAND, "run", *endless], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        while b"acknowledged 0 " in run.stderr.readline():
            pass
        workers = [child for child in psutil.Process(run.pid).children() if "spawn_main" in " ".join(child.cmdline())]
        workers[0].kill()
        output, errors = run.communicate(timeout=20)
    assert run.returncode == 1
    assert b"exit code -9" in errors
    assert acknowledged(output) > 0


def test_parquet_refuses_malformed_events(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """The Parquet sink refuses a share of malformed events, because they have no columns."""
    path = tmp_path / "events.parquet"
    done = run_here("run", "--sink", "parquet", "--path", path, "--keys", "10", "--events", "5", "--malformed", "0.1")
    assert done.returncode == 2
    assert b"malformed" in done.stderr
    assert not path.exists()


def test_file_that_cannot_be_created_is_one_line(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    """An output file whose folder is missing is an error of one line."""
    path = tmp_path / "missing" / "x.json"
    done = run_here("run", "--sink", "json", "--path", path, "--keys", "10", "--events", "5")
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: path: %b cannot be written (" % bytes(path))
    assert done.stderr.count(b"\n") == 1


def test_package_imports_neither_spark_nor_airflow() -> None:
    """Importing the generator loads neither Spark nor Airflow."""
    look = "import sys, generator, generator.kafka_sink; print([m for m in ('pyspark', 'airflow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize("pace", [["--rate", "2000", "--duration", "0.8"], ["--rate", "max", "--events", "200000"]])
def test_events_in_real_time_are_sold_now(tmp_path: Path, run_here: Callable[..., Done], pace: list[str]) -> None:
    """`sold_at` ascends within the run; a paced stream spreads it over its duration."""
    path = tmp_path / "events.json"
    began = datetime.now(UTC) - timedelta(milliseconds=1)  # sold_at is cut to milliseconds
    run_here("run", "--sink", "json", "--path", path, "--keys", "100", "--burstiness", "1", *pace)
    ended = datetime.now(UTC)
    times = [datetime.fromisoformat(json.loads(line)["sold_at"]) for line in path.read_text().splitlines()]
    assert began <= times[0] <= times[-1] <= ended
    assert times == sorted(times)
    if "--duration" in pace:
        assert (times[-1] - times[0]).total_seconds() == pytest.approx(0.8, abs=0.1)


def test_progress_has_the_current_rate(run_here: Callable[..., Done]) -> None:
    """A progress line shows the rate since the line before, not the mean of the run: 0 in a silence."""
    stream = ["--rate", "4000", "--burstiness", "1", "--active", "0.6", "--silent", "0.6", "--duration", "2.4"]
    done = run_here("run", "--sink", "none", "--keys", "100", *stream, "--progress", "0.15")
    lines = re.findall(r"([\d,]+)/s  sent ([\d,]+) ", done.stderr.decode())
    rates = [int(now.replace(",", "")) for now, sent in lines if sent != "0"]
    assert rates.count(0) >= 3
    silence = rates.index(0)
    assert max(rates[:silence]) > 2500
    assert max(rates[silence:]) > 2500
