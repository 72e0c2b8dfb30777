"""Secrets are created once, in a file that only its owner can read."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet

from foundation.errors import SettingsError
from foundation.settings import SECRET_NAMES, read_settings
from services.secrets_file import ensure_secrets

if TYPE_CHECKING:
    from pathlib import Path


def read(file: Path) -> dict[str, str]:
    """Return the file's variables."""
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_the_first_start_creates_every_secret(tmp_path: Path) -> None:
    """The first start creates every secret; all are different, and none is short."""
    ensure_secrets(tmp_path / "secrets.env")
    values = list(read(tmp_path / "secrets.env").values())
    assert len(values) == len(set(values)) == len(SECRET_NAMES)
    assert min(map(len, values)) >= 32


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """The secrets file has mode 600."""
    ensure_secrets(tmp_path / "secrets.env")
    assert stat.S_IMODE((tmp_path / "secrets.env").stat().st_mode) == 0o600


def test_only_the_owner_can_read_the_folder(tmp_path: Path) -> None:
    """Only the owner can read the folder, because other programs write files there without that protection."""
    ensure_secrets(tmp_path / "state" / "secrets.env")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_the_fernet_key_is_valid(tmp_path: Path) -> None:
    """Airflow can encrypt with the generated Fernet key."""
    ensure_secrets(tmp_path / "secrets.env")
    box = Fernet(read(tmp_path / "secrets.env")["FRESHET_AIRFLOW_FERNET_KEY"])
    assert box.decrypt(box.encrypt(b"word")) == b"word"


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    """A second start keeps all secrets, because existing data uses these passwords."""
    ensure_secrets(tmp_path / "secrets.env")
    before = (tmp_path / "secrets.env").read_text()
    ensure_secrets(tmp_path / "secrets.env")
    assert (tmp_path / "secrets.env").read_text() == before


def test_a_newer_version_adds_missing_secrets(tmp_path: Path) -> None:
    """A start with a newer version adds missing secrets and keeps the others."""
    ensure_secrets(tmp_path / "secrets.env")
    complete = read(tmp_path / "secrets.env")
    older = {name: value for name, value in complete.items() if name != "FRESHET_READER_PASSWORD"}
    (tmp_path / "secrets.env").write_text("".join(f"{name}={value}\n" for name, value in older.items()))
    ensure_secrets(tmp_path / "secrets.env")
    newer = read(tmp_path / "secrets.env")
    assert newer.keys() == complete.keys()
    assert {name: newer[name] for name in older} == older


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A secrets file that others can read is refused; the message states the command to type."""
    ensure_secrets(tmp_path / "secrets.env")
    (tmp_path / "secrets.env").chmod(0o640)
    with pytest.raises(SettingsError, match=r"got mode 640\. Type: chmod 600 .*secrets\.env"):
        ensure_secrets(tmp_path / "secrets.env")


def test_a_file_that_is_not_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer and every reader report the path of a secrets file that is not text."""
    (tmp_path / "secrets.env").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("FRESHET_STATE", str(tmp_path))
    with pytest.raises(SettingsError, match=r"FRESHET_STATE: .*secrets\.env must be a text file .* move it away"):
        ensure_secrets(tmp_path / "secrets.env")
    with pytest.raises(SettingsError, match=r"FRESHET_STATE: .*secrets\.env must be a text file .* move it away"):
        read_settings()


@pytest.mark.parametrize("way", ["secrets.env is a folder", "the state cannot be created"])
def test_a_file_that_cannot_be_created_is_named(tmp_path: Path, way: str) -> None:
    """The error for a secrets file that cannot be created states what to do next."""
    file = tmp_path / "secrets.env"
    if way == "secrets.env is a folder":
        file.mkdir()
    else:
        (tmp_path / "file").touch()
        file = tmp_path / "file" / "state" / "secrets.env"
    with pytest.raises(SettingsError, match=r"or set FRESHET_STATE to a folder of your own"):
        ensure_secrets(file)
