"""Install everything the project runs on into `.freshet/`, each part once per version of the file that pins it.

Runs on the system's ``python3`` (see preflight): standard library only. A part is installed when its stamp holds the
checksum of its pins, so a second call takes no time, and a call that was cut short goes on where it stopped.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from preflight import Unfit, check_disk, check_java, check_maven, find_python

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".freshet"
POM = ROOT / "services" / "pom.xml"
UV_VERSION = "0.13.8"
HEARTBEAT_SECONDS = 5


def main():
    """Check the machine, then install what is missing."""
    try:
        check_java()
        if not _is_current("python", _python_pins()) or not _is_current("mariadb", POM.read_bytes()):
            check_maven()
            check_disk(HOME)
        _once("python", _python_pins(), install_python)
        for profile in ("kafka", "spark"):
            _once(profile, POM.read_bytes(), lambda profile=profile: copy_jars(profile))
        if os.environ.get("FRESHET_MARIADBD", "bundled") == "bundled":
            _once("mariadb", POM.read_bytes(), install_mariadb)
    except Unfit as lack:
        sys.exit("make: %s" % lack)


def install_python():
    """Make the virtual environment that uv.lock describes."""
    python = find_python()
    environment = dict(os.environ, UV_PROJECT_ENVIRONMENT=str(HOME / "venv"), UV_PYTHON_DOWNLOADS="never")
    command = [_uv(python), "sync", "--frozen", "--compile-bytecode", "--python", python]
    _run("Python packages", command, environment)


def copy_jars(profile):
    """Copy one profile's jars of the pom into a folder of their own."""
    folder = HOME / "jars" / profile
    shutil.rmtree(str(folder), ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DoutputDirectory=%s" % folder]
    _run("%s jars" % profile, ["mvn", "-B", "-ntp", "-f", str(POM), "-P", profile, *goal])


def install_mariadb():
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


def _uv(python):
    present = shutil.which("uv")
    if present:
        return present
    tools = HOME / "tools"
    own = tools / "bin" / "uv"
    if not own.exists():
        _run("uv (Python's installer)", [python, "-m", "venv", "--clear", str(tools)])
        _run("uv %s" % UV_VERSION, [str(tools / "bin" / "python"), "-m", "pip", "install", "-q", "uv==" + UV_VERSION])
    return str(own)


def _run(title, command, environment=None):
    """Run one step with a sign of life every few seconds; its output goes to a log that a failure quotes."""
    log = HOME / "logs" / ("install-%s.log" % title.split()[0].lower())
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    print("  installing %s" % title, flush=True)
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=str(ROOT))
        while True:
            try:
                code = child.wait(HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print("    ... still at it, %d s" % (time.monotonic() - started), flush=True)
    if code != 0:
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise Unfit(
            "installing %s failed: %s. Is there a network, and a proxy to name in https_proxy? The whole story: %s. "
            "Then run the same make again: it goes on from here." % (title, (said or ["no output"])[-1].strip(), log)
        )


def _python_pins():
    return (ROOT / "uv.lock").read_bytes() + (ROOT / "pyproject.toml").read_bytes()


def _stamp(part):
    return HOME / "installed" / part


def _is_current(part, pins):
    stamp = _stamp(part)
    return stamp.exists() and stamp.read_text() == hashlib.sha256(pins).hexdigest()


def _once(part, pins, install):
    if not _is_current(part, pins):
        install()
        _stamp(part).parent.mkdir(parents=True, exist_ok=True)
        _stamp(part).write_text(hashlib.sha256(pins).hexdigest())


if __name__ == "__main__":
    main()
