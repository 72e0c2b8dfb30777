"""Each requirement that a machine does not meet is one line with the command to type next."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from foundation.errors import UnfitError
from services import preflight

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str, prints: str, code: int = 0) -> None:
    """Create a program that prints this text."""
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\nexit {code}\n")
    file.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a PATH with only sh, cat and env on it."""
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "cat", "env"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("FRESHET_PYTHON", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "bin"


@pytest.mark.usefixtures("path")
def test_a_missing_java_is_named() -> None:
    """The error for a missing Java states the package to install."""
    with pytest.raises(UnfitError, match=r"no `java` is on the PATH\. .*apt install openjdk-17"):
        preflight.check_java()


@pytest.mark.parametrize("printed", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_392"', "what?"])
def test_an_old_java_is_named_with_its_version(path: Path, printed: str) -> None:
    """The error for an old Java quotes the first line of `java -version`."""
    program(path, "java", printed)
    with pytest.raises(UnfitError) as caught:
        preflight.check_java()
    assert printed in str(caught.value)
    assert "17" in str(caught.value)


def test_a_new_java_passes(path: Path) -> None:
    """A Java that is new enough raises no error."""
    program(path, "java", 'openjdk version "21.0.1" 2023-10-17')
    preflight.check_java()


@pytest.mark.parametrize("there", [True, False])
def test_the_java_of_java_home_is_checked_too(path: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    """The Java of JAVA_HOME is checked too, because Maven and Spark prefer it."""
    program(path, "java", 'openjdk version "21.0.1" 2023-10-17')
    if there:
        (path / "bin").mkdir()
        program(path / "bin", "java", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(path))
    with pytest.raises(UnfitError, match="Point JAVA_HOME at one, or unset it") as caught:
        preflight.check_java()
    assert ("1.8.0_392" if there else "No such file") in str(caught.value)


@pytest.mark.usefixtures("path")
def test_a_missing_maven_is_named() -> None:
    """The error for a missing Maven states the package to install."""
    with pytest.raises(UnfitError, match=r"no `mvn` is on the PATH.*apt install maven"):
        preflight.check_maven()


def test_a_wrong_python_is_named_with_its_version(path: Path) -> None:
    """The error for a wrong Python has its version and states how to choose another."""
    program(path, "python3", "3 9")
    with pytest.raises(UnfitError, match=r"found: python3 is 3\.9\. .*FRESHET_PYTHON="):
        preflight.find_python()


def test_a_python_without_venv_is_passed_over(path: Path) -> None:
    """A Python without the module venv, as on Debian, is skipped for the next candidate."""
    program(path, "python3", "", code=1)
    program(path, "python3.12", "3 12")
    assert preflight.find_python() == str(path / "python3.12")


def test_too_little_disk_is_named_with_how_much_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little free disk space is an error with the space that is left; the test replaces the system's answer."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(9, 8, 1_300_000_000))  # noqa: SLF001
    with pytest.raises(UnfitError, match=r"4 GB of free disk are needed .* 1\.3 GB are left"):
        preflight.check_disk(tmp_path)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """The error states the folder that cannot be created because a file is in the way."""
    (tmp_path / "file").touch()
    with pytest.raises(UnfitError, match="cannot be written"):
        preflight.check_writable(tmp_path / "file" / "folder")


def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    """The error states a socket path longer than the kernel's limit of 107 bytes."""
    with pytest.raises(UnfitError, match="Clone into a folder with a shorter path"):
        preflight.check_socket_path(tmp_path / ("x" * 100))
