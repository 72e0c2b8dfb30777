"""Every program of services/ that fails ends with one line, not with a traceback."""

from __future__ import annotations

import runpy
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from foundation.errors import FreshetError, SettingsError, TransientError
from foundation.settings import PREFIX, settings
from services.one_line import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def ending(error: BaseException) -> str | int | None:
    """Return the exit code, or the line, of a program that raises this exception."""
    with pytest.raises(SystemExit) as ended, one_line():
        raise error
    return ended.value.code


@pytest.mark.parametrize("kind", [FreshetError, SettingsError, TransientError])
def test_an_error_of_ours_is_its_own_line(kind: type[FreshetError]) -> None:
    """An error of Freshet ends a program with one line, cause then remedy, even if its message has several lines."""
    assert ending(kind("port 1 is\n  in use", "Use another.")) == "freshet: port 1 is in use. Use another."


def test_an_error_of_the_system_names_the_file() -> None:
    """An OSError ends a program with Python's message, the file in it, and what to check."""
    line = ending(FileNotFoundError(2, "No such file or directory", "java"))
    assert str(line).startswith("freshet: [Errno 2] No such file or directory: 'java'. Check")


def test_a_program_that_failed_is_named_with_its_exit_code() -> None:
    """A failed subprocess is reported with its name and exit code, without its arguments."""
    line = ending(subprocess.CalledProcessError(3, ["java", "-cp", "long"]))
    assert line == "freshet: java ended with exit code 3. Its own output is above."


def test_ctrl_c_prints_nothing() -> None:
    """Ctrl-C ends a program with the shell's usual exit code and no output."""
    assert ending(KeyboardInterrupt()) == 130


def test_an_unknown_error_keeps_its_traceback() -> None:
    """An unexpected exception keeps its traceback, because it is a mistake in the code."""
    with pytest.raises(ZeroDivisionError), one_line():
        raise ZeroDivisionError


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Run a program of services/ with these words and variables in an empty state; return the line it ends with."""

    def run(program: str, *words: str, **variables: str) -> str:
        monkeypatch.setattr(sys, "argv", [program, *words])
        for name, value in variables.items():
            monkeypatch.setenv(PREFIX + name, value)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(program, run_name="__main__")
        assert isinstance(ended.value.code, str), ended.value
        assert "\n" not in ended.value.code
        return ended.value.code

    monkeypatch.setenv(f"{PREFIX}STATE", str(tmp_path))
    settings.cache_clear()
    yield run
    settings.cache_clear()


# runpy warns that pytest has imported the module before.
@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("services.__main__", ["settings"]),
        ("services.accounts", []),
        ("services.airflow", ["scheduler"]),
        ("services.health", ["scheduler"]),
        ("services.kafka", []),
        ("services.mariadb", []),
    ],
)
def test_a_bad_setting_is_the_last_line_of_every_program(
    run: Callable[..., str], program: str, words: list[str]
) -> None:
    """A bad setting ends every program with a line that states the variable, its rule and its value."""
    line = run(program, *words, KAFKA_PORT="many")
    assert "FRESHET_KAFKA_PORT" in line
    assert "got 'many'. Correct it, or unset it for its default." in line


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
def test_a_missing_secret_names_its_variable(run: Callable[..., str]) -> None:
    """A program whose secret is missing ends with the variable's name before it starts anything."""
    assert run("services.airflow", "triggerer").startswith("freshet: FRESHET_AIRFLOW_FERNET_KEY is not set. ")


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
def test_accounts_without_a_warehouse_name_its_address(run: Callable[..., str]) -> None:
    """When no warehouse listens, the creation of accounts fails with its address."""
    secrets = {f"{user}_PASSWORD": "word" for user in ("ROOT", "OWNER", "LOADER", "READER", "CHECKER")}
    line = run("services.accounts", MARIADB_PORT="1025", **secrets)
    assert line.startswith("freshet: the accounts cannot be created at 127.0.0.1:1025 (")
    assert "Connection refused" in line


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
def test_a_wrong_server_names_the_setting_and_its_value(run: Callable[..., str]) -> None:
    """A wrong MariaDB server is reported with setting and value, also in the log under the supervisor."""
    line = run("services.mariadb", MARIADBD="/nowhere/mariadbd")
    assert line.startswith("freshet: FRESHET_MARIADBD must be the path of a mariadbd, got '/nowhere/mariadbd'")
