"""Install everything the project runs on into `.freshet/`: `python3 -m services.install`.

Each part is installed once per version of the file that pins it. It runs on the system's ``python3`` (see preflight):
standard library only. A part is installed when its stamp holds the checksum of its pins. So a second call takes no
time, and a call that was cut short goes on where it stopped.
"""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path

from foundation import spark_launch
from foundation.errors import UnfitError
from services.preflight import check_disk, check_java, check_maven, check_writable, find_python

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".freshet"
POM = ROOT / "services" / "pom.xml"
CLASS_ARCHIVE = ROOT / "spark_apps" / "class_archive.py"
UV_VERSION = "0.13.8"
HEARTBEAT_SECONDS = 5
KERNEL_MARKS = (b"@kernel", b"@inlined", b"njit")


def main() -> None:
    """Check the machine, then install what is missing."""
    try:
        check_writable(HOME)
        lock = (HOME / "install.lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second waits, then finds everything installed
        check_java()
        missing = [part for part in parts() if not _is_current(*part[:2])]
        if missing:
            check_maven()
            check_disk(HOME)
        for name, pins, install in missing:
            install()
            _mark(name, pins)
        forget_kernels()
    except UnfitError as lack:
        sys.exit(f"make: {lack}")


def parts() -> list:  # type: ignore[type-arg]  # old Pythons take no argument here
    """Return what is to be there: each part's name, the content of the file that pins it, and how to install it."""
    pom = POM.read_bytes()
    packages = (ROOT / "uv.lock").read_bytes() + (ROOT / "semistream" / "pyproject.toml").read_bytes()
    listed = [("python", packages, install_python)]
    listed += [(profile, pom, partial(copy_jars, profile)) for profile in ("kafka", "spark")]
    if os.environ.get("FRESHET_MARIADBD", "bundled") == "bundled":
        listed.append(("mariadb", pom, install_mariadb))
    listed.append(("classes", (ROOT / "uv.lock").read_bytes() + CLASS_ARCHIVE.read_bytes(), archive_classes))
    return listed


def install_python() -> None:
    """Make the virtual environment that uv.lock describes."""
    python = find_python()
    environment = dict(os.environ, UV_PROJECT_ENVIRONMENT=str(HOME / "venv"), UV_PYTHON_DOWNLOADS="never")
    command = [_uv(python), "sync", "--frozen", "--compile-bytecode", "--python", python]
    _run("Python packages", command, environment)


def copy_jars(profile: str) -> None:
    """Copy one profile's jars of the pom into a folder of their own."""
    folder = HOME / "jars" / profile
    shutil.rmtree(str(folder), ignore_errors=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    _run(f"{profile} jars", ["mvn", "-B", "-ntp", "-f", str(POM), "-P", profile, *goal])


def install_mariadb() -> None:
    """Unpack the MariaDB server from the jar it comes in."""
    copy_jars("mariadb")
    jars = HOME / "jars" / "mariadb"
    home = HOME / "mariadb"
    shutil.rmtree(str(home), ignore_errors=True)
    (jar,) = jars.glob("*.jar")
    with zipfile.ZipFile(str(jar)) as archive:
        for entry in archive.infolist():
            _, marker, inner = entry.filename.partition("/linux/")
            if not marker or entry.is_dir():
                continue
            target = home / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            if target.parent.name in ("bin", "scripts"):
                target.chmod(target.stat().st_mode | stat.S_IXUSR)
    shutil.rmtree(str(jars))


def archive_classes() -> None:
    """Let the JVM keep Spark's classes the way it loads them: every application starts seconds sooner.

    One that cannot use the archive, an other Java's for instance, does without.
    """
    archive = spark_launch.class_archive(HOME / "jars")
    options = f'{spark_launch.QUICK_START} "-XX:ArchiveClassesAtExit={archive}"'
    launching = spark_launch.environment(str(HOME / "venv" / "bin" / "python"))
    environment = dict(os.environ, SPARK_SUBMIT_OPTS=options, **launching)
    submit = [str(HOME / "venv" / "bin" / "spark-submit"), "--master", "local[1]"]
    try:
        _run("class archive of Spark", [*submit, str(CLASS_ARCHIVE)], environment)
    except UnfitError as lack:
        print(f"  going on without it, each Spark application will start some seconds later: {lack}", flush=True)


def forget_kernels() -> None:
    """Have kernels compiled anew when one has changed: numba sees that of its own file, and of none that it calls."""
    files = sorted(path for folder in ("generator", "semistream", "spark_apps") for path in (ROOT / folder).rglob("*"))
    sources = [path.read_bytes() for path in files if path.suffix == ".py"]
    kernels = b"".join(source for source in sources if any(mark in source for mark in KERNEL_MARKS))
    if not _is_current("kernels", kernels):
        for compiled in files:
            if compiled.suffix in (".nbc", ".nbi"):
                compiled.unlink()
        _mark("kernels", kernels)


def _uv(python: str) -> str:
    present = shutil.which("uv")
    if present:
        return present
    tools = HOME / "tools"
    own = tools / "bin" / "uv"
    if not own.exists():
        _run("uv (Python's installer)", [python, "-m", "venv", "--clear", str(tools)])
        _run(f"uv {UV_VERSION}", [str(tools / "bin" / "python"), "-m", "pip", "install", "-q", "uv==" + UV_VERSION])
    return str(own)


def _run(title: str, command: list, environment: dict = None) -> None:  # type: ignore[assignment,type-arg]  # noqa: RUF013  # no `| None` in old Pythons
    """Run one step with a sign of life every few seconds; its output goes to a log that a failure quotes."""
    log = HOME / "logs" / f"install-{title.split(maxsplit=1)[0].lower()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    print(f"  installing {title}", flush=True)
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=str(ROOT))
        except OSError as error:
            raise UnfitError(
                f"installing {title} failed: {error}", "Type: make clean, then the same make again"
            ) from error
        while True:
            try:
                code = child.wait(HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(f"    ... still at it, {time.monotonic() - started:.0f} s", flush=True)
    if code != 0:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))
        said = [line for line in plain.splitlines() if line.strip()]
        told = next((line for line in said if "ERROR" in line), (said or ["no output"])[-1]).strip()
        raise UnfitError(
            f"installing {title} failed: {told}",
            "Is there a network, or a proxy to name "
            f"in https_proxy? The whole story: {log}. Then run the same make again: it goes on from here.",
        )


def _stamp(part: str) -> Path:
    return HOME / "installed" / part


def _mark(part: str, pins: bytes) -> None:
    _stamp(part).parent.mkdir(parents=True, exist_ok=True)
    _stamp(part).write_text(_fingerprint(pins))


def _is_current(part: str, pins: bytes) -> bool:
    stamp = _stamp(part)
    return stamp.exists() and stamp.read_text() == _fingerprint(pins)


def _fingerprint(pins: bytes) -> str:
    """Tell one version of a part from another; what is installed works in the folder it was installed in only."""
    return hashlib.sha256(os.fsencode(str(ROOT)) + pins).hexdigest()


if __name__ == "__main__":
    main()
