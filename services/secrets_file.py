"""The passwords and keys of one installation: created at the first start, in a file that only its owner can read."""

from __future__ import annotations

import base64
import os
import secrets
import stat
from typing import TYPE_CHECKING

from foundation.errors import SettingsError
from foundation.settings import PREFIX, SECRET_NAMES, unusable

if TYPE_CHECKING:
    from pathlib import Path


def ensure_secrets(file: Path) -> None:
    """Create the secrets file, or add the secrets that a newer version needs; refuse a file that others can read."""
    try:
        _complete(file)
    except (OSError, UnicodeError) as error:
        raise unusable(file, error) from error
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        raise SettingsError(f"{file} must be readable by its owner only, got mode {mode:o}", f"Type: chmod 600 {file}")


def _complete(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = file.read_text().splitlines() if file.exists() else []
    present = {line.partition("=")[0] for line in lines}
    missing = [name for name in SECRET_NAMES if _variable(name) not in present]
    if missing:
        write_private(file, "\n".join([*lines, *(f"{_variable(name)}={_new_secret(name)}" for name in missing)]) + "\n")


def write_private(file: Path, text: str) -> None:
    """Write a file atomically, so that at every moment only its owner can read it."""
    half = file.with_suffix(".half")
    half.unlink(missing_ok=True)
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(descriptor)
    half.replace(file)


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _new_secret(name: str) -> str:
    if name == "airflow_fernet_key":
        return base64.urlsafe_b64encode(os.urandom(32)).decode()
    return secrets.token_urlsafe(24)
