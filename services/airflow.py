"""Run one component of Airflow with the environment it needs: `python -m services.airflow scheduler`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from foundation import spark_launch
from foundation.settings import ROOT, Settings, settings
from services.one_line import one_line
from services.secrets_file import write_private
from services.stack import started

INIT = 1  # the parent of processes whose own has died
ADMIN, VIEWER = "admin", "viewer"  # the viewer may look at everything and change nothing


def main() -> None:
    """Replace this process with the airflow command and the given arguments."""
    config = settings()
    airflow = Path(sys.executable).with_name("airflow")
    arguments = sys.argv[1:]
    if arguments == ["api-server"]:
        write_login(config)
    if arguments[:1] == ["scheduler"]:
        end_orphaned_workers(config)
    os.execve(airflow, [str(airflow), *arguments], environment(config, *arguments[:1]))


def end_orphaned_workers(config: Settings) -> None:
    """End the workers of a scheduler that was killed: they hold its passwords, and Airflow tries their tasks again."""
    for each in started():
        with suppress(psutil.NoSuchProcess):
            if each.state == config.state and "airflow worker" in each.command_line and each.process.ppid() == INIT:
                each.process.kill()


def write_login(config: Settings) -> None:
    """Write the file from which Airflow's simple auth manager reads the passwords of its two users."""
    logins = {ADMIN: config.secret("airflow_password"), VIEWER: config.secret("airflow_viewer_password")}
    write_private(password_file(config), json.dumps(logins))


def password_file(config: Settings) -> Path:
    """Return the path of the simple auth manager's password file, in Airflow's home."""
    return config.state / "airflow" / "login.json"


def environment(config: Settings, component: str = "") -> dict[str, str]:
    """Return the environment of a component. Components differ only in secrets: each gets those that it uses."""
    home = config.state / "airflow"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = config.airflow_database.get_secret_value() or f"sqlite:///{home / 'airflow.db'}"
    options = {
        "CORE__DAGS_FOLDER": ROOT / "dags",
        "CORE__PLUGINS_FOLDER": ROOT / "plugins",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": config.airflow_parallelism,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": False,
        "CORE__EXECUTION_API_SERVER_URL": f"{config.airflow_api}/execution/",
        "CORE__FERNET_KEY": config.secret("airflow_fernet_key"),
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin,{VIEWER}:viewer",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": password_file(config),
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": False,
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "API__HOST": config.airflow_host,
        "API__PORT": config.airflow_port,
        "API__BASE_URL": config.airflow_public_url or config.airflow_api,
        "API__EXPOSE_CONFIG": False,
        "API_AUTH__JWT_ISSUER": "freshet",
        "LOGGING__BASE_LOG_FOLDER": home / "logs",
        "DAG_PROCESSOR__REFRESH_INTERVAL": 30,  # seconds until a new Dag file is seen
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 20,  # seconds until a new pipeline's file is seen
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 60,  # seconds until a killed task is tried again
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.5,  # seconds; it delays the start of the next Airflow task
        "USAGE_DATA_COLLECTION__ENABLED": False,
    }
    if component == "api-server":
        options["API__SECRET_KEY"] = config.secret("airflow_session_key")
    if component in ("api-server", "scheduler"):  # the scheduler signs tokens, the server checks them
        options["API_AUTH__JWT_SECRET"] = config.secret("airflow_jwt_secret")
    airflow = {f"AIRFLOW__{name}": str(value) for name, value in options.items()}
    # The LocalExecutor runs Airflow tasks in the scheduler. The page in the api-server reads the warehouse; it changes
    # nothing there, but triggers Dags.
    accounts = {
        "scheduler": ("owner", "loader", "reader", "checker"),
        "triggerer": ("loader",),
        "api-server": ("reader",),
    }.get(component, ())
    for_tasks = connections(config, accounts) if accounts else {}
    for_programs = {
        **spark_launch.environment(driver_host=config.spark_driver_host),
        "AIRFLOW_HOME": str(home),
        "FRESHET_STATE": str(config.state),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GX_ANALYTICS_ENABLED": "False",
    }
    return {**os.environ, **airflow, **for_tasks, **for_programs}


def connections(config: Settings, accounts: tuple[str, ...]) -> dict[str, str]:
    """Return Airflow's connections as environment variables, to the warehouse by these accounts.

    They override connections that are made in Airflow's UI.
    """
    warehouse: dict[str, dict[str, object]] = {
        account: {
            "conn_type": "mysql",
            "host": config.mariadb_host,
            "port": config.mariadb_port,
            "schema": config.database,
            "login": account,
            "password": config.secret(f"{account}_password"),
        }
        for account in accounts
    }
    described = {f"warehouse_{account}": connection for account, connection in warehouse.items()}
    if "reader" in accounts:  # tasks and the page ask the broker, too
        described["kafka_default"] = {"conn_type": "kafka", "extra": {"bootstrap.servers": config.kafka_bootstrap}}
    if "owner" in accounts:  # tasks start Spark
        described["spark_default"] = {"conn_type": "spark", "host": config.spark_master}
        metrics = {"conn_type": "http", "port": config.metrics_port, "password": config.secret("metrics_password")}
        described["metrics_default"] = metrics
    return {f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection) for name, connection in described.items()}


if __name__ == "__main__":
    with one_line():
        main()
