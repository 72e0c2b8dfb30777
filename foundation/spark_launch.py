"""How Spark is launched: its environment, its jars and its command line. Tasks, tests and benchmarks all ask here.

Standard library only, and no syntax newer than the oldest Python that a user may have: the installer uses this file
before there is a virtual environment.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"
# A program of seconds ends before the JVM's second compiler has earned what it costs.
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
    """Return the options of a driver's JVM; one that cannot use the class archive says nothing and does without."""
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
        arguments: the program's own.
        master: local[N] or the URL of a Spark master.
        jars: the setting of this name.
        more_jars: files beside the connector's.
        memory: of the driver.
        options: more of spark-submit's own.
    """
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master, "--driver-memory", memory]
    command += ["--jars", ",".join([*connector_jars(jars), *map(str, more_jars)])]
    command += ["--conf", f"spark.driver.extraJavaOptions={java_options(jars)}", *options]
    return [*command, str(program), *map(str, arguments)]
