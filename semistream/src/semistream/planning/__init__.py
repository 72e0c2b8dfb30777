"""Plans: which join, with how large pages, and how to divide a memory, from the papers' cost models."""

from semistream.planning.machine import PAPERS, Machine
from semistream.planning.predict import Plan, Prediction, predict
from semistream.planning.skew import Skew
from semistream.planning.workload import Workload

__all__ = ["PAPERS", "Machine", "Plan", "Prediction", "Skew", "Workload", "predict"]
