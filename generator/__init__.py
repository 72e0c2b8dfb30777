"""The self-similar Zipfian stream of sales: `python -m generator --help`, or from Python.

A run in five lines:

from generator import StreamSettings, Target, run_stream

report = run_stream(
    StreamSettings(keys=10_000, rate=500.0, duration=60.0, seed=7),
    Target(sink="kafka", bootstrap="127.0.0.1:9092", topic="sales"),
)
print(report.acknowledged)
"""

from generator.run import run_stream
from generator.settings import SettingError, StreamSettings
from generator.sinks import SinkError, Stop
from generator.tally import Report
from generator.target import Target

__all__ = ["Report", "SettingError", "SinkError", "Stop", "StreamSettings", "Target", "run_stream"]
