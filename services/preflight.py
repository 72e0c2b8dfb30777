"""What a machine must have before anything is installed, each lack explained in one line.

Runs on whatever ``python3`` there is, before the project's environment exists: standard library only, and no syntax
newer than the oldest Python that a user may type it into.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
OLDEST_JAVA = 17
NEEDED_DISK_GB = 4
LONGEST_SOCKET_PATH = 107  # sun_path of a unix socket, less its terminator


class Unfit(Exception):  # noqa: N818  # it reads as a verdict about the machine: `except Unfit`
    """This machine lacks something; the message says what, and what to type next."""


def find_python():
    """Return the newest supported interpreter: FRESHET_PYTHON if set, else from the PATH."""
    chosen = os.environ.get("FRESHET_PYTHON")
    minors = range(NEWEST_PYTHON[1], OLDEST_PYTHON[1] - 1, -1)
    candidates = [chosen] if chosen else ["python3"] + ["python3.%d" % minor for minor in minors]
    seen = []
    for name in candidates:
        version = _python_version(name)
        if version and OLDEST_PYTHON <= version <= NEWEST_PYTHON:
            return shutil.which(name)
        if version:
            seen.append("%s is %d.%d" % (name, version[0], version[1]))
    raise Unfit(
        "Python 3.11 to 3.13 is needed; found: %s. Install one (Debian: apt install python3.11 python3.11-venv) or name it: "
        "make demo FRESHET_PYTHON=/path/to/python3.11" % (", ".join(seen) or "none")
    )


def _python_version(name):
    path = shutil.which(name)
    if not path:
        return None
    probe = [path, "-c", "import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1])"]
    answer = subprocess.run(probe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    words = answer.stdout.split()
    return (int(words[0]), int(words[1])) if answer.returncode == 0 and len(words) == 2 else None


def check_java():
    """Raise Unfit unless a Java of at least version 17 is on the PATH."""
    advice = "Install one (Debian: apt install openjdk-17-jre-headless) and see that `java -version` prints it."
    java = shutil.which("java")
    if not java:
        raise Unfit("Java %d or newer is needed; no `java` is on the PATH. %s" % (OLDEST_JAVA, advice))
    answer = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    printed = answer.stdout.decode(errors="replace")
    found = re.search(r'version "(?:1\.)?(\d+)', printed)
    if not found or int(found.group(1)) < OLDEST_JAVA:
        first = (printed.splitlines() or ["nothing"])[0]
        raise Unfit("Java %d or newer is needed; `java -version` prints: %s. %s" % (OLDEST_JAVA, first, advice))


def check_maven():
    """Raise Unfit unless Maven is on the PATH."""
    if not shutil.which("mvn"):
        raise Unfit("Maven is needed to fetch Kafka and MariaDB; no `mvn` is on the PATH. Debian: apt install maven")


def check_disk(folder):
    """Raise Unfit unless the folder can be written and has room for everything that will be installed."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        free_gb = shutil.disk_usage(str(folder)).free / 1e9
    except OSError as error:
        raise Unfit("%s cannot be written: %s. Clone to a folder of your own." % (folder, error.strerror)) from error
    if not os.access(str(folder), os.W_OK):
        raise Unfit("%s cannot be written by you. Clone to a folder of your own." % folder)
    if free_gb < NEEDED_DISK_GB:
        raise Unfit(
            "%d GB of free disk are needed below %s, %.1f GB are left. Free some, or clone to another disk."
            % (NEEDED_DISK_GB, folder, free_gb)
        )


def check_socket_path(path):
    """Raise Unfit when the supervisor's socket would have a longer path than the kernel takes."""
    length = len(os.fsencode(str(path)))
    if length > LONGEST_SOCKET_PATH:
        raise Unfit(
            "%s has %d bytes, a socket's path may have %d. Clone to a shorter path, or set FRESHET_STATE to one."
            % (path, length, LONGEST_SOCKET_PATH)
        )
