"""Installation and removal, in a copy of the project with stand-ins for the programs that download."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from foundation.settings import ROOT
from services import stack

SECONDS = 20.0
NO_NETWORK = (
    "\x1b[1;31m[ERROR] Could not resolve kafka-clients: Unknown host\x1b[m\n[ERROR] For more, read the manual\n\x1b[0m"
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the files that make and the installer read, with stand-ins that do nothing and succeed."""
    clone = tmp_path / "clone"
    (clone / "services").mkdir(parents=True)
    for file in (*(ROOT / "services").glob("*.py"), ROOT / "services" / "pom.xml"):
        shutil.copy(file, clone / "services")
    for folder in ("foundation", "spark_apps", "semistream"):
        (clone / folder).mkdir()
    for file in (ROOT / "foundation").glob("*.py"):
        shutil.copy(file, clone / "foundation")
    shutil.copy(ROOT / "spark_apps" / "class_archive.py", clone / "spark_apps")
    shutil.copy(ROOT / "semistream" / "pyproject.toml", clone / "semistream")
    for name in ("Makefile", "uv.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, clone)
    (tmp_path / "bin").mkdir()
    for name in ("uv", "mvn"):
        program(tmp_path / "bin" / name, "")
    return clone


def program(file: Path, prints: str, code: int = 0) -> None:
    """Create a program that prints this text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\nexit {code}\n")
    file.chmod(0o755)


def run(clone: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the copy, with the stand-ins first on the PATH."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "FRESHET_"))}
    path = f"{clone.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**own, "PATH": path, **variables}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def install(clone: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the copy's installer."""
    return run(clone, sys.executable, "-m", "services.install", **variables)


def test_a_failed_download_of_packages_is_one_line_with_the_log_and_the_next_step(clone: Path) -> None:
    """A failed download of packages is one line that quotes the last line of uv's output."""
    program(clone.parent / "bin" / "uv", "error: tunnel to the index failed", code=2)
    answer = install(clone)
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    assert "installing Python packages failed: error: tunnel to the index failed" in line
    assert "run the same make again" in line


def test_a_failed_download_of_jars_is_one_line_with_mavens_first_error(clone: Path) -> None:
    """A failed download of jars is one line with Maven's first error, because its last line has no reason."""
    program(clone.parent / "bin" / "mvn", NO_NETWORK, code=1)
    (line,) = install(clone).stderr.splitlines()
    assert (
        "installing kafka jars failed: [ERROR] Could not resolve kafka-clients: Unknown host. Check the network" in line
    )


def test_a_second_installation_runs_nothing(clone: Path) -> None:
    """A second installation with the user's own server runs nothing; with the bundled one it adds that part."""
    own = {"FRESHET_MARIADBD": "mariadbd"}
    program(clone / ".freshet" / "venv" / "bin" / "spark-submit", "")
    assert install(clone, **own).returncode == 0
    for name in ("uv", "mvn"):
        program(clone.parent / "bin" / name, "asked again", code=1)
    again = install(clone, **own)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    bundled = install(clone)
    assert bundled.stderr.startswith("make: installing mariadb jars failed: asked again")


def test_a_changed_lock_file_installs_its_parts_again(clone: Path) -> None:
    """A changed lock file reinstalls the Python packages and the class archive of their Spark."""
    program(clone / ".freshet" / "venv" / "bin" / "spark-submit", "")
    assert install(clone, FRESHET_MARIADBD="mariadbd").returncode == 0
    with (clone / "uv.lock").open("a") as lock:
        lock.write("# a new version\n")
    again = install(clone, FRESHET_MARIADBD="mariadbd")
    assert again.stdout.splitlines() == ["  installing Python packages", "  installing class archive of Spark"]


def test_kernels_are_compiled_again_when_one_of_them_has_changed(clone: Path) -> None:
    """A change in a kernel's file recompiles all kernels, because callers cache old code; other changes do not."""
    own = {"FRESHET_MARIADBD": "mariadbd"}
    program(clone / ".freshet" / "venv" / "bin" / "spark-submit", "")
    assert install(clone, **own).returncode == 0
    compiled = [clone / "spark_apps" / "__pycache__" / f"kernel.{kind}" for kind in ("nbi", "nbc", "pyc")]
    compiled[0].parent.mkdir()
    for file in compiled:
        file.touch()
    (clone / "spark_apps" / "other.py").write_text("changed = True")
    assert install(clone, **own).returncode == 0
    assert all(file.exists() for file in compiled)
    (clone / "semistream" / "called.py").write_text("@kernel\ndef changed(): ...")
    assert install(clone, **own).returncode == 0
    assert [file.exists() for file in compiled] == [False, False, True]


def test_a_clone_that_was_moved_is_installed_again(clone: Path) -> None:
    """A moved clone is reinstalled, because the programs of a virtual environment contain its path."""
    program(clone / ".freshet" / "venv" / "bin" / "spark-submit", "")
    assert install(clone, FRESHET_MARIADBD="mariadbd").returncode == 0
    moved = clone.rename(clone.with_name("moved"))
    assert "installing Python packages" in install(moved, FRESHET_MARIADBD="mariadbd").stdout


def test_the_installation_succeeds_without_a_class_archive(clone: Path) -> None:
    """Without a class archive the installation succeeds, and reports that applications start later, and why."""
    program(clone / ".freshet" / "venv" / "bin" / "spark-submit", "no archive today", code=1)
    answer = install(clone, FRESHET_MARIADBD="mariadbd")
    assert answer.returncode == 0
    assert "continuing without it; each Spark application starts some seconds later" in answer.stdout
    assert "no archive today" in answer.stdout


def test_a_clone_that_cannot_be_written_is_one_line(clone: Path) -> None:
    """An installation folder that cannot be created is an error of one line."""
    (clone / ".freshet").touch()
    (line,) = install(clone).stderr.splitlines()
    assert line.startswith(f"make: {clone / '.freshet'} cannot be written")


def test_no_python_at_all_is_one_line(clone: Path) -> None:
    """Without any Python, the Makefile itself prints one line."""
    for tool in ("make", "bash"):
        (clone.parent / "bin" / tool).symlink_to(str(shutil.which(tool)))
    answer = run(clone, "make", "up", PATH=str(clone.parent / "bin"))
    assert "no python3 is on the PATH. Debian: apt install" in answer.stderr.splitlines()[0]


def test_an_incomplete_installation_says_so_and_can_be_removed(clone: Path) -> None:
    """An installation whose Python cannot import the packages is reported as incomplete, and `clean` removes it."""
    program(clone / ".freshet" / "venv" / "bin" / "python", "ModuleNotFoundError", code=1)
    first, *_ = run(clone, "make", "down").stderr.splitlines()
    assert first == "make: nothing is installed yet, or not all of it. Type: make demo"
    answer = run(clone, "make", "clean")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert not (clone / ".freshet").exists()


def test_clean_ends_every_stack_whose_data_it_removes(clone: Path) -> None:
    """`clean` ends this clone's stacks, also one with another state folder; other clones' stacks keep running."""
    (clone / ".freshet" / "second").mkdir(parents=True)
    (clone / ".freshet" / "venv").symlink_to(Path(sys.prefix), target_is_directory=True)
    states = (clone / ".freshet" / "second", clone.parent / "elsewhere")
    second, other = (subprocess.Popen(["sleep", "600"], env={stack.MARK: str(state)}) for state in states)
    reaper = Thread(target=second.wait)  # as init does for a real orphan
    reaper.start()
    try:
        answer = run(clone, "make", "clean")
        assert (answer.returncode, answer.stderr) == (0, "")
        assert not (clone / ".freshet").exists()
        reaper.join(SECONDS)
        assert second.returncode == -15
        assert other.poll() is None
    finally:
        for process in (second, other):
            process.kill()
            process.wait()
    assert Path(sys.executable).exists()
