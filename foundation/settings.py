"""All settings, read from FRESHET_* environment variables, with types and clear errors.

Secrets come from the environment too, or from `secrets.env` in the state folder. Only its owner can read that file;
services/secrets_file.py makes it at the first start. A process needs only the secrets that it uses.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from foundation.errors import SettingsError
from foundation.state import StateFolders

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "FRESHET_"

NOT_GIVEN = SecretStr("")
STARTED_WITH = "started.env"  # in the state folder while the system runs (services/started_with.py)

Port = Annotated[int, Field(ge=1024, le=65535)]


class Settings(BaseSettings):
    """The settings of one system."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    state: Path = Field(ROOT / ".freshet" / "run", description="folder of the running system's data, logs and secrets")
    jars: Path = Field(ROOT / ".freshet" / "jars", description="folder of the jars that services/pom.xml pins")

    pipelines: Path = Field(ROOT / "pipelines", description="folder of the pipelines' files")

    kafka_host: str = Field("127.0.0.1", description="the broker's host, as clients reach it")
    kafka_port: Port = Field(19092, description="the broker's port")
    kafka_controller_port: Port = Field(19093, description="the port of Kafka's own controller (KRaft)")

    mariadbd: str = Field("bundled", description="`bundled`, or the path of a mariadbd to use instead")
    mariadb_host: str = Field("127.0.0.1", description="the warehouse's host, as clients reach it")
    mariadb_port: Port = Field(13306, description="the warehouse's port")
    database: str = Field("freshet", pattern=r"^[a-z][a-z0-9_]{0,31}$", description="the warehouse's schema")

    airflow_host: str = Field("127.0.0.1", description="the address that Airflow's web server listens on")
    airflow_port: Port = Field(18080, description="the port of Airflow's web server")
    airflow_url: str = Field("", description="where Airflow's components find its API; by default host and port")
    airflow_public_url: str = Field("", description="where browsers find Airflow; by default where its components do")
    airflow_database: SecretStr = Field(NOT_GIVEN, description="SQLAlchemy URL; by default SQLite in the state")
    airflow_parallelism: Annotated[int, Field(ge=4, le=256)] = Field(8, description="number of Airflow tasks at once")

    spark_master: str = Field("local[2]", description="local[N], or the URL of a Spark master")
    spark_driver_host: str = Field("127.0.0.1", description="address of Spark's driver, also for executors")

    metrics_port: Port = Field(19100, description="the first port of the metrics pages for Prometheus, on 127.0.0.1")

    root_password: SecretStr = NOT_GIVEN
    owner_password: SecretStr = NOT_GIVEN
    loader_password: SecretStr = NOT_GIVEN
    reader_password: SecretStr = NOT_GIVEN
    checker_password: SecretStr = NOT_GIVEN
    metrics_password: SecretStr = NOT_GIVEN
    airflow_password: SecretStr = NOT_GIVEN
    airflow_viewer_password: SecretStr = NOT_GIVEN
    airflow_fernet_key: SecretStr = NOT_GIVEN
    airflow_jwt_secret: SecretStr = NOT_GIVEN
    airflow_session_key: SecretStr = NOT_GIVEN

    @property
    def kafka_bootstrap(self) -> str:
        """The broker's address as clients write it."""
        return f"{self.kafka_host}:{self.kafka_port}"

    @property
    def airflow_api(self) -> str:
        """The base address of Airflow's API."""
        return self.airflow_url or f"http://{self.airflow_host}:{self.airflow_port}"

    @property
    def folders(self) -> StateFolders:
        """The folders of the state."""
        return StateFolders(self.state)

    def secret(self, name: str) -> str:
        """Return a password or a key; raise SettingsError if this process does not have it."""
        value: str = getattr(self, name).get_secret_value()
        if not value:
            raise SettingsError(
                f"{PREFIX}{name.upper()} is not set",
                "Run `make up`, which generates it at the first start, or set it in the environment.",
            )
        return value


SECRET_NAMES = tuple(name for name in Settings.model_fields if name.endswith(("_password", "_key", "_secret")))


def state_folder() -> Path:
    """Return the setting `state`, which must be known before the others: their files are in that folder."""
    return Path(os.environ.get(PREFIX + "STATE") or Settings.model_fields["state"].default).resolve()


@cache
def settings() -> Settings:
    """Return the settings, read once per process."""
    return read_settings()


def read_settings() -> Settings:
    """Read the settings from the environment, the variables that the system was started with, and the secrets file."""
    state = state_folder()
    try:
        return Settings(_env_file=(state / STARTED_WITH, state / "secrets.env"), state=state)  # type: ignore[call-arg]
    except ValidationError as error:
        raise SettingsError(
            "; ".join(map(_explain, error.errors())), "Correct it, or unset it for its default."
        ) from None
    except (OSError, UnicodeError) as error:
        raise unusable(state / "secrets.env", error) from error


def unusable(secrets_file: Path, error: Exception) -> SettingsError:
    """Return the error for a secrets file that cannot be read or written."""
    return SettingsError(
        f"{PREFIX}STATE: {secrets_file} must be a text file that you can read and write, got: {error}",
        f"Restore it or move it away, or set {PREFIX}STATE to a folder of your own.",
    )


def _explain(problem: object) -> str:
    assert isinstance(problem, dict)  # noqa: S101  # pydantic's ErrorDetails is a dict
    field = str(problem["loc"][0])
    name = PREFIX + field.removeprefix(PREFIX.lower()).upper()
    about = Settings.model_fields[field]
    shown = "a secret" if field in SECRET_NAMES else repr(problem["input"])
    return f"{name} ({about.description}; default {about.default!r}): {problem['msg']}, got {shown}"
