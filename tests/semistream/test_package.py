"""The joins stand on their own: light to import, shown in a few lines, compiled once."""

import doctest
import subprocess
import sys

import semistream


def test_the_example_in_the_docstring_works() -> None:
    """A notebook's reader can paste it."""
    results = doctest.testmod(semistream)
    assert results.attempted == 6
    assert results.failed == 0


def test_imports_no_engine_broker_scheduler_or_driver() -> None:
    """Neither Spark, Kafka, Airflow nor a database driver is imported with the joins."""
    code = "import sys, semistream, semistream.relation.mariadb; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    heavy = {"pyspark", "kafka", "airflow", "pymysql", "pandas", "matplotlib"}
    assert not heavy & {name.split(".")[0] for name in modules}


def test_a_second_process_does_not_compile() -> None:
    """After `warm_up` machine code comes from the cache: another process compiles nothing."""
    warm = "from semistream.warm_up import warm_up; warm_up()"
    subprocess.run([sys.executable, "-c", warm], check=True)
    count = """
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, e): compiled.append(e.data["dispatcher"].py_func.__name__)
    def on_end(self, e): pass
event.register("numba:compile", Listener())
from semistream.warm_up import warm_up
warm_up()
print(len(compiled), *compiled)
"""
    result = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True)
    assert result.stdout.split()[0] == "0", result.stdout


def test_no_join_needs_a_kernel_that_is_not_warm() -> None:
    """After `warm_up` every join, over every store and kind of key, finds all its kernels loaded, whatever it does."""
    code = "from tests.semistream.cold_kernels import cold_kernels; print(*cold_kernels(), sep=chr(10))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not result.stdout.strip()
