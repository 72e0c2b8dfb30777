"""docker-compose.yml is the system of one machine: same programs, same versions, and no secret where none is used."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from configparser import RawConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from foundation.connections import login
from foundation.errors import SettingsError
from foundation.settings import PREFIX, ROOT, SECRET_NAMES, Settings, read_settings
from services import airflow, health, kafka, mariadb, stack
from services.accounts import GRANTS
from spark_apps.running.stop import ASKED_BY, IS_RETRY

if TYPE_CHECKING:
    from collections.abc import Callable

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "services" / "Dockerfile").read_text()
POM = {
    element.tag.rpartition("}")[2]: element.text
    for element in ET.parse(ROOT / "services" / "pom.xml").iterfind(".//{*}properties/*")  # noqa: S314  # ours
}
REQUIRED = re.compile(r"\$\{(\w+):\?[^}]+\}")
EXACT = re.compile(r"[a-z/-]+:\d+\.\d+[\w.-]*")

OURS = {name: service for name, service in SERVICES.items() if "build" in service}
AIRFLOW = {name: service["command"][3:] for name, service in OURS.items() if "services.airflow" in service["command"]}
ONE_SHOTS = {"airflow-migration", "warehouse-accounts"}
NOT_SHIPPED = {"tests", "docs", "benchmarks"}
FINE_AS_THEY_ARE = {  # settings whose default holds in a container too; every other must be set for somebody
    "pipelines",
    "airflow_parallelism",
    "airflow_port",
    "database",
    "metrics_port",
    "kafka_controller_port",  # of the broker that one machine runs; the container's broker has its own variables
    "mariadbd",
}


def given(service: str) -> dict[str, str]:
    """What a container's program finds in its environment, every secret being the name of its variable in `.env`."""
    values: dict[str, object] = SERVICES[service].get("environment", {})
    from_image = dict(re.findall(r"(FRESHET_\w+)=(\S+)", DOCKERFILE)) if service in OURS else {}
    return {**from_image, **{name: REQUIRED.sub(r"\1", str(value)) for name, value in values.items()}}


def secrets_of(service: str) -> set[str]:
    """The secrets that a container is given, by the setting's name."""
    return {name for name in SECRET_NAMES if PREFIX + name.upper() in given(service)}


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Read the settings as a container's program does, but for one variable that may be left out."""

    def read(service: str, without: str = "") -> Settings:
        for name in Settings.model_fields:
            monkeypatch.delenv(PREFIX + name.upper(), raising=False)
        environment = {**given(service), "FRESHET_STATE": str(tmp_path)}
        for name, value in environment.items():
            if name != PREFIX + without.upper():
                monkeypatch.setenv(name, value)
        return read_settings()

    return read


def test_the_file_is_a_valid_compose_file() -> None:
    """Against the schema of the compose specification."""
    checker = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec"]
    answer = subprocess.run([*checker, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("image", [service["image"] for name, service in SERVICES.items() if name not in OURS])
def test_every_image_has_an_exact_version(image: str) -> None:
    """Neither `latest` nor a tag that moves with a minor version; ours is built from this repository."""
    assert EXACT.fullmatch(image)
    assert image.partition(":")[2].count(".") >= 2 or image.startswith("postgres:")  # PostgreSQL counts major.minor


def test_images_have_the_versions_of_one_machine() -> None:
    """A server runs what was tested on one machine."""
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert images["kafka"] == f"apache/kafka:{POM['kafka.version']}"
    assert images["mariadb"] == f"mariadb:{POM['mariadb.version']}"
    assert {images[name] for name in OURS} == {"freshet:local"}


def test_our_image_is_made_of_exact_versions() -> None:
    """Base images, the installer, Python's packages and the connector's jars."""
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", DOCKERFILE, re.MULTILINE)
    assert len(stages) == DOCKERFILE.count("FROM ")
    assert all(EXACT.fullmatch(image) and image.count(".") >= 2 for image, _ in stages), stages
    assert stages[-1][0].startswith("python:3.11.")
    (installer,) = re.findall(r'^UV_VERSION = "(.*)"$', (ROOT / "services" / "install.py").read_text(), re.MULTILINE)
    assert f"uv=={installer}\n" in DOCKERFILE
    assert "uv sync --frozen" in DOCKERFILE
    assert "-f /build/services/pom.xml -P spark" in DOCKERFILE
    assert set(re.findall(r"--from=(\w+)", DOCKERFILE)) == {stage for _, stage in stages if stage}


def test_our_image_runs_the_repository_as_an_ordinary_user() -> None:
    """From one folder, which is also where Python looks; the last USER is who runs."""
    folders = re.findall(r"^WORKDIR (\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"PYTHONPATH={folders[-1]} " in DOCKERFILE
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["freshet"]


def test_our_image_holds_what_runs_and_nothing_else() -> None:
    """An allow-list: `.env`, the history and the state of a machine cannot get in."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert allowed == folders - NOT_SHIPPED | {"pyproject.toml", "uv.lock"}


@pytest.mark.parametrize("name", [*SERVICES])
def test_every_service_is_awaited_by_its_health_or_its_end(name: str) -> None:
    """A service has a health check; a one-shot has waiters for its success instead, and does not start again."""
    waiting = [
        needed[name]["condition"] for each in SERVICES.values() if name in (needed := each.get("depends_on", {}))
    ]
    if name in ONE_SHOTS:
        assert SERVICES[name]["restart"] == "no"
        assert waiting
        assert set(waiting) == {"service_completed_successfully"}
    else:
        assert SERVICES[name]["restart"] == "unless-stopped"
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
        assert set(waiting) <= {"service_healthy"}


def test_services_start_in_the_order_of_one_machine() -> None:
    """Databases, then accounts and tables, then Airflow; tasks run when all that they use is there."""
    waits = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    assert waits["airflow-migration"] == {"airflow-database"}
    assert waits["warehouse-accounts"] == {"mariadb"}
    assert all("airflow-migration" in waits[name] for name in AIRFLOW if name not in {*ONE_SHOTS, "airflow-scheduler"})
    assert waits["airflow-scheduler"] == {"airflow-api-server", "warehouse-accounts", "kafka", "spark-worker"}


@pytest.mark.parametrize("name", [*OURS])
def test_commands_are_programs_of_this_repository_or_spark(name: str) -> None:
    """And they exist."""
    for command in (OURS[name]["command"], OURS[name].get("healthcheck", {"test": ["CMD"]})["test"][1:]):
        if command[:1] == ["spark-class"]:
            (jar,) = (Path(sys.prefix) / "lib").glob("python*/site-packages/pyspark/jars/spark-core_*.jar")
            assert command[1].replace(".", "/") + ".class" in zipfile.ZipFile(jar).namelist()
        elif command:
            assert command[:2] == ["python", "-m"]
            assert command[2].startswith("services.")
            assert importlib.util.find_spec(command[2])
        if command[2:3] == ["services.health"]:
            assert command[3] in health.CONTAINER_CHECKS


def test_airflow_runs_by_the_commands_of_one_machine() -> None:
    """The same four components with the same arguments."""
    supervised = RawConfigParser()
    supervised.read(ROOT / "services" / "supervisord.conf")
    programs = [
        supervised[section]["command"]
        for section in supervised.sections()
        if ":airflow-" in section and not section.endswith("migration")
    ]
    of_one_machine = {command.partition(" -m services.airflow ")[2] for command in programs}
    assert of_one_machine == {" ".join(arguments) for name, arguments in AIRFLOW.items() if name not in ONE_SHOTS}


def test_kafka_has_the_properties_of_one_machine() -> None:
    """But for addresses and folders."""
    lines = [line.partition("=") for line in kafka.PROPERTIES.splitlines()]
    wanted = {"KAFKA_" + name.upper().replace(".", "_"): value for name, _, value in lines if "127.0.0.1" not in value}
    wanted["KAFKA_LOG_DIRS"] = "/var/lib/kafka/data"
    found = given("kafka")
    assert {name: found.get(name) for name in wanted} == wanted
    assert set(found) - set(wanted) == {
        "KAFKA_LISTENERS",
        "KAFKA_ADVERTISED_LISTENERS",
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
    }


def test_mariadb_has_the_options_of_one_machine(tmp_path: Path) -> None:
    """But for addresses, folders and the user that it runs as."""
    of_machine = (
        "--no-defaults",
        "--basedir",
        "--tmpdir",
        "--datadir",
        "--socket",
        "--pid-file",
        "--bind-address",
        "--port",
        "--user",
        "--skip-ssl",  # passwords travel between containers
    )
    options = mariadb.options(Settings.model_validate({}), tmp_path / "data")
    assert SERVICES["mariadb"]["command"] == [option for option in options if not option.startswith(of_machine)]


def test_every_setting_is_set_for_somebody_or_fine_as_it_is() -> None:
    """A new setting has to be thought about here; a misspelt one is nobody's."""
    variables = {name for service in SERVICES for name in given(service) if name.startswith(PREFIX)}
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert variables <= known
    assert {name.removeprefix(PREFIX).lower() for name in known - variables} == FINE_AS_THEY_ARE


def test_every_variable_that_the_code_reads_is_a_setting() -> None:
    """But for what one process of ours tells another, and the interpreter that the installer is to use."""
    told = {stack.MARK, ASKED_BY, IS_RETRY, "FRESHET_RUN", "FRESHET_PYTHON"}
    files = [
        file
        for name in ("services", "spark_apps", "plugins", "dags", "quality")
        for file in (ROOT / name).rglob("*.py")
    ]
    named = {name for file in files for name in re.findall(r"""["'](FRESHET_[A-Z_]+)["']""", file.read_text())}
    assert named - told <= {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("name", ["scheduler", "dag-processor", "triggerer"])
def test_a_component_of_airflow_is_asked_for_its_own_health(name: str) -> None:
    """Not for its neighbour's."""
    assert SERVICES[f"airflow-{name}"]["healthcheck"]["test"][-1] == name.replace("-", "_")


@pytest.mark.parametrize(("name", "arguments"), AIRFLOW.items())
def test_airflow_finds_everything_and_nothing_on_its_own_loopback(
    name: str, arguments: list[str], inside: Callable[..., Settings]
) -> None:
    """The environment that the component would run with, made by the program itself, names other containers."""
    environment = airflow.environment(inside(name), arguments[0])
    addresses = {
        variable: value
        for variable, value in environment.items()
        if variable.startswith("AIRFLOW_") and re.search(r"127\.0\.0\.1|localhost|sqlite|local\[", value)
    }
    assert addresses.keys() <= {"AIRFLOW__API__BASE_URL", "AIRFLOW__API__HOST"}
    hosts = set(
        re.findall(r"(?:@|//)([\w.-]+)[:/]", environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].split("//", 1)[1])
    )
    hosts |= set(re.findall(r"//([\w-]+):", environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]))
    assert hosts == {"airflow-database", "airflow-api-server"}
    (published,) = SERVICES["airflow-api-server"]["ports"]
    assert environment["AIRFLOW__API__BASE_URL"] == f"http://{published.rpartition(':')[0]}"
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].endswith(
        f":{published.rpartition(':')[2]}/execution/"
    )


def test_the_web_server_listens_to_other_containers(inside: Callable[..., Settings]) -> None:
    """Alone among Airflow's components: it is the one that others call."""
    assert inside("airflow-api-server").airflow_host == "0.0.0.0"  # noqa: S104  # its container's addresses


def test_tasks_find_kafka_the_warehouse_and_spark(inside: Callable[..., Settings]) -> None:
    """By Airflow's connections; and Spark's executors find the driver."""
    environment = airflow.environment(inside("airflow-scheduler"), "scheduler")
    connections = {name: json.loads(value) for name, value in environment.items() if name.startswith("AIRFLOW_CONN_")}
    assert {
        (connection["host"], connection["port"]) for name, connection in connections.items() if "WAREHOUSE" in name
    } == {("mariadb", 3306)}
    (advertised,) = re.findall(r"//(.*)", given("kafka")["KAFKA_ADVERTISED_LISTENERS"])
    assert connections["AIRFLOW_CONN_KAFKA_DEFAULT"]["extra"]["bootstrap.servers"] == advertised
    assert connections["AIRFLOW_CONN_SPARK_DEFAULT"]["host"] == OURS["spark-worker"]["command"][-1]
    assert OURS["spark-worker"]["command"][-1] == f"spark://{OURS['spark-master']['hostname']}:7077"
    assert OURS["spark-master"]["command"][-2:] == ["--host", OURS["spark-master"]["hostname"]]
    assert environment["SPARK_LOCAL_IP"] == OURS["airflow-scheduler"]["hostname"] == "airflow-scheduler"


@pytest.mark.parametrize(("name", "arguments"), AIRFLOW.items())
def test_an_airflow_component_has_the_secrets_that_it_uses_and_no_others(
    name: str, arguments: list[str], inside: Callable[..., Settings], tmp_path: Path
) -> None:
    """It starts with them, and without any one of them it says which is missing."""

    def start(chosen: Settings) -> None:
        airflow.environment(chosen, arguments[0])
        if arguments == ["api-server"]:
            airflow.write_login(chosen)

    start(inside(name))
    assert list(tmp_path.iterdir()) == [tmp_path / "airflow"]
    for secret in secrets_of(name):
        with pytest.raises(SettingsError, match=f"^{PREFIX}{secret.upper()} is not set"):
            start(inside(name, without=secret))


def test_only_who_speaks_to_the_warehouse_has_its_passwords(inside: Callable[..., Settings]) -> None:
    """Root makes the accounts; tasks use all others; what Spark's workers run is the loader and nobody else."""
    accounts = {f"{account}_password" for account in GRANTS}
    assert secrets_of("warehouse-accounts") == {"root_password", *accounts}
    assert secrets_of("spark-worker") == {"loader_password"}
    assert secrets_of("spark-master") == set()
    assert secrets_of("airflow-scheduler") == {
        "airflow_fernet_key",
        "airflow_jwt_secret",
        "metrics_password",
        *accounts,
    }
    assert login("loader", inside("spark-worker")).host == "mariadb"
    assert {name for name in SERVICES if "root_password" in secrets_of(name)} == {"warehouse-accounts"}


def test_root_comes_in_from_the_servers_own_address_only(inside: Callable[..., Settings]) -> None:
    """As on one machine: who makes the accounts shares the server's network."""
    assert OURS["warehouse-accounts"]["network_mode"] == "service:mariadb"
    assert login("root", inside("warehouse-accounts")).host == given("mariadb")["MARIADB_ROOT_HOST"] == "127.0.0.1"


@pytest.mark.parametrize("name", [*SERVICES])
def test_no_secret_is_in_the_file(name: str) -> None:
    """Each is a required reference to `.env`: no literal, no default, no empty value."""
    for variable, value in SERVICES[name].get("environment", {}).items():
        if variable.endswith(("_PASSWORD", "_KEY", "_SECRET")):
            assert REQUIRED.fullmatch(str(value)), variable
        assert "$" not in REQUIRED.sub("", str(value)), variable
        assert not re.search(r"//\w+:(?!\$\{\w+:\?)", str(value)) or "@" not in str(value), variable
    outside_environment = {key: value for key, value in SERVICES[name].items() if key != "environment"}
    assert "${" not in json.dumps(outside_environment)


def test_the_example_lists_what_is_required_and_no_values() -> None:
    """A copy with every line filled in is complete; one with a line forgotten is refused by compose."""
    lines = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and not line.startswith("#")]
    required = set(REQUIRED.findall((ROOT / "docker-compose.yml").read_text()))
    assert sorted(lines) == sorted(f"{name}=" for name in required)
    assert required == {PREFIX + name.upper() for name in SECRET_NAMES} | {"FRESHET_AIRFLOW_DATABASE_PASSWORD"}


def test_nothing_but_airflows_web_port_is_published() -> None:
    """And that one to the server itself."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"airflow-api-server": ["127.0.0.1:18080:18080"]}
    assert not [name for name, service in SERVICES.items() if service.get("network_mode", "").startswith("host")]


def test_data_is_in_named_volumes_and_shared_by_who_needs_it() -> None:
    """Everything that must outlive a container; drivers and executors see the same state, Airflow the same logs."""
    mounts = {name: [mount.split(":") for mount in service.get("volumes", [])] for name, service in SERVICES.items()}
    assert {volume for mounted in mounts.values() for volume, _ in mounted} == set(COMPOSE["volumes"])
    users = {volume: {name for name in mounts if [volume, path] in mounts[name]} for volume, path in WHERE.items()}
    assert users["state"] == {"airflow-scheduler", "spark-worker"}
    assert users["airflow-logs"] == set(AIRFLOW) - ONE_SHOTS
    assert all(users[name] == {name} for name in ("kafka", "mariadb", "airflow-database"))


@pytest.mark.parametrize("service", [*health.CONTAINER_CHECKS])
def test_a_health_check_fails_in_one_line_when_nobody_answers(service: str, tmp_path: Path) -> None:
    """As a container's program, in a network of its own where nothing runs."""
    alone = ["unshare", "--net", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets nobody make a network of their own")
    answer = subprocess.run(
        [*alone, sys.executable, "-m", "services.health", service],
        cwd=ROOT,
        env={"FRESHET_STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert re.fullmatch(rf"{service} is NOT healthy: no answer from \S+ \(.*\)\n", answer.stderr)


STATE = dict(re.findall(r"(FRESHET_\w+)=(\S+)", DOCKERFILE))["FRESHET_STATE"]
WHERE = {
    "state": STATE,
    "airflow-logs": f"{STATE}/airflow/logs",
    "kafka": given("kafka")["KAFKA_LOG_DIRS"],
    "mariadb": "/var/lib/mysql",
    "airflow-database": "/var/lib/postgresql/data",
}
