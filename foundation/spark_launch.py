"""How Spark is launched: its environment, its jars and its command line. Airflow tasks, tests and benchmarks use it.

Standard library only, and no syntax newer than the oldest Python that a user might have: the installer uses this file
before there is a virtual environment.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"
# A program that runs for seconds ends before the JVM's second compiler saves more time than it takes.
QUICK_START = "-XX:TieredStopAtLevel=1"


def environment(python: str = sys.executable, driver_host: str = LOOPBACK) -> dict:  # type: ignore[type-arg]
    """Return the variables that every launch of Spark sets: where our code is, which Python, the driver's address."""
    return {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": driver_host}


def connector_jars(jars: Path) -> list:  # type: ignore[type-arg]
    """List the jars of Spark's Kafka connector, below the setting `jars`."""
    return sorted(str(jar) for jar in (jars / "spark").glob("*.jar"))


def class_archive(jars: Path) -> Path:
    """Return the file with Spark's classes, ready for a JVM to map (services/install.py makes it)."""
    return jars / "spark.jsa"


def java_options(jars: Path, *, short: bool = False) -> str:
    """Return the options of a driver's JVM; one that cannot use the class archive runs without it, silently."""
    return f'"-XX:SharedArchiveFile={class_archive(jars)}"' + (f" {QUICK_START}" if short else "")


def submit(  # noqa: PLR0913  # what launches differ in
    program: Path,
    *arguments: object,
    master: str,
    jars: Path,
    more_jars: tuple = (),  # type: ignore[type-arg]  # old Pythons take no argument here
    memory: str = "1g",
    options: tuple = (),  # type: ignore[type-arg]
) -> list:  # type: ignore[type-arg]
    """Return the command line that submits a program.

    Args:
        program: the Python file.
        arguments: the program's arguments.
        master: local[N] or the URL of a Spark master.
        jars: the setting `jars`.
        more_jars: jars besides those of the connector.
        memory: the driver's memory.
        options: more options of spark-submit.
    """
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master, "--driver-memory", memory]
    command += ["--jars", ",".join([*connector_jars(jars), *map(str, more_jars)])]
    command += ["--conf", f"spark.driver.extraJavaOptions={java_options(jars)}", *options]
    return [*command, str(program), *map(str, arguments)]
