"""Check that a machine has what the installation needs; each error is one line.

It runs on the system's ``python3``, before there is a virtual environment. So it imports only the standard library and
works on old Pythons.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from foundation.errors import UnfitError

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
OLDEST_JAVA = 17
NEEDED_DISK_GB = 4
LONGEST_SOCKET_PATH = 107  # sun_path of a unix socket, less its terminator
PROBE = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


def find_python() -> str:
    """Return a supported interpreter: FRESHET_PYTHON if it is set, else the first supported one on the PATH."""
    named = os.environ.get("FRESHET_PYTHON")
    minors = range(NEWEST_PYTHON[1], OLDEST_PYTHON[1] - 1, -1)
    candidates = [named] if named else ["python3", *(f"python3.{minor}" for minor in minors)]
    seen = []
    for name in candidates:
        path = shutil.which(name)
        version = python_version(path) if path else ()
        if path and version and OLDEST_PYTHON <= version <= NEWEST_PYTHON:
            return path
        if version:
            seen.append("{} is {}.{}".format(name, *version))
    raise UnfitError(
        f"Python 3.11 to 3.13 with its venv module is needed; found: {', '.join(seen) or 'none'}",
        "Install one (Debian: apt install python3.11-venv) or name it: make demo FRESHET_PYTHON=/path/to/python3.11",
    )


def python_version(path: str) -> tuple:  # type: ignore[type-arg]  # old Pythons take no argument here
    """Return an interpreter's (major, minor), or () when it does not work or has no venv."""
    answer = subprocess.run([path, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else ()


def check_java() -> None:
    """Raise UnfitError unless the Java on the PATH, and that of JAVA_HOME if it is set, is version 17 or newer."""
    advice = "Install one (Debian: apt install openjdk-17-jre-headless) and check that `java -version` prints it."
    java = shutil.which("java")
    if not java:
        raise UnfitError(f"Java {OLDEST_JAVA} or newer is needed; no `java` is on the PATH", advice)
    check_java_version(java, advice)
    home = os.environ.get("JAVA_HOME")
    if home:  # Maven and Spark prefer it
        check_java_version(str(Path(home, "bin", "java")), "Point JAVA_HOME at one, or unset it.")


def check_java_version(java: str, advice: str) -> None:
    """Raise UnfitError with this advice unless this Java has the oldest supported version or a newer one."""
    try:
        answer = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        printed = answer.stdout.decode(errors="replace")
    except OSError as error:
        printed = str(error)
    found = re.search(r'version "(?:1\.)?(\d+)', printed)
    if not found or int(found.group(1)) < OLDEST_JAVA:
        first = (printed.splitlines() or ["nothing"])[0]
        raise UnfitError(f"Java {OLDEST_JAVA} or newer is needed; `{java} -version` prints: {first}", advice)


def check_maven() -> None:
    """Raise UnfitError unless Maven is on the PATH."""
    if not shutil.which("mvn"):
        raise UnfitError(
            "Maven is needed to download Kafka and MariaDB; no `mvn` is on the PATH", "Debian: apt install maven"
        )


def check_writable(folder: Path) -> None:
    """Create a folder if it is missing; raise UnfitError unless you can write to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfitError(f"{folder} cannot be written: {error.strerror}", "Clone into a folder of your own.") from error
    if not os.access(str(folder), os.W_OK):
        raise UnfitError(f"{folder} cannot be written: permission denied", "Clone into a folder of your own.")


def check_disk(folder: Path) -> None:
    """Raise UnfitError unless there is enough free disk for the installation."""
    free_gb = shutil.disk_usage(str(folder)).free / 1e9
    if free_gb < NEEDED_DISK_GB:
        raise UnfitError(
            f"{NEEDED_DISK_GB} GB of free disk are needed below {folder}, {free_gb:.1f} GB are left",
            "Free some space, or clone onto another disk.",
        )


def check_socket_path(path: Path) -> None:
    """Raise UnfitError when the path of the supervisor's socket is longer than the kernel allows."""
    length = len(os.fsencode(str(path)))
    if length > LONGEST_SOCKET_PATH:
        raise UnfitError(
            f"{path}: the path of a socket must have at most {LONGEST_SOCKET_PATH} bytes, this one has {length}",
            "Clone into a folder with a shorter path, or set FRESHET_STATE to one.",
        )
