"""An invalid setting is an error that states the rule and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.errors import SettingsError
from foundation.settings import SECRET_NAMES, read_settings
from services.secrets_file import ensure_secrets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a state folder with secrets, and remove all settings from the environment."""
    for name in ("KAFKA_PORT", "KAFKA_CONTROLLER_PORT", "MARIADB_PORT", "AIRFLOW_PORT", "METRICS_PORT"):
        monkeypatch.delenv(f"FRESHET_{name}", raising=False)
    monkeypatch.setenv("FRESHET_STATE", str(tmp_path))
    ensure_secrets(tmp_path / "secrets.env")
    return tmp_path


def test_defaults_work_without_any_variable(state: Path) -> None:
    """Without any variable, all settings have valid defaults."""
    config = read_settings()
    assert config.state == state
    assert config.kafka_bootstrap == "127.0.0.1:19092"
    assert config.airflow_api == "http://127.0.0.1:18080"


def test_the_environment_wins_over_the_secrets_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password in the environment overrides the one in the secrets file."""
    monkeypatch.setenv("FRESHET_LOADER_PASSWORD", "from the environment")
    assert read_settings().loader_password.get_secret_value() == "from the environment"
    assert "from the environment" not in (state / "secrets.env").read_text()


@pytest.mark.parametrize(
    ("variable", "value", "rule"),
    [
        ("FRESHET_KAFKA_PORT", "80", "greater than or equal to 1024"),
        ("FRESHET_KAFKA_PORT", "many", "valid integer"),
        ("FRESHET_MARIADB_PORT", "65536", "less than or equal to 65535"),
        ("FRESHET_DATABASE", "a; DROP TABLE b", "match pattern"),
        ("FRESHET_AIRFLOW_PARALLELISM", "1", "greater than or equal to 4"),
    ],
)
@pytest.mark.usefixtures("state")
def test_a_bad_value_is_named_with_its_rule(
    variable: str, value: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error for a bad value has the parameter, its rule, the value and the next step in one line."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    message = str(caught.value)
    assert message.startswith(variable)
    assert rule in message
    assert repr(value) in message
    assert "unset it" in message
    assert "\n" not in message


def test_secrets_never_show_in_text(state: Path) -> None:
    """Neither repr nor str of the settings contains a password."""
    config = read_settings()
    shown = f"{config!r} {config}"
    values = [getattr(config, name).get_secret_value() for name in SECRET_NAMES]
    assert all(values)
    assert not [value for value in values if value in shown]
    assert state.exists()
