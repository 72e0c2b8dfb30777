"""docker-compose.yml runs the programs and versions of one machine; each container gets only its own secrets."""

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
from spark_apps.running.stop import KEPT_BY, RUN_ID

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
GOOD_DEFAULTS = {  # settings whose default also fits a container; a service must set every other setting
    "pipelines",
    "airflow_parallelism",
    "airflow_port",
    "database",
    "metrics_port",
    "kafka_controller_port",  # of one machine's broker; the container's broker has variables of its own
    "mariadbd",
}


def given(service: str) -> dict[str, str]:
    """Return the environment of a container's program; a secret's value is the name of its variable in `.env`."""
    values: dict[str, object] = SERVICES[service].get("environment", {})
    from_image = dict(re.findall(r"(FRESHET_\w+)=(\S+)", DOCKERFILE)) if service in OURS else {}
    return {**from_image, **{name: REQUIRED.sub(r"\1", str(value)) for name, value in values.items()}}


def secrets_of(service: str) -> set[str]:
    """Return the secrets that a container gets, by the setting's name."""
    return {name for name in SECRET_NAMES if PREFIX + name.upper() in given(service)}


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Read the settings as a container's program does, optionally without one variable."""

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
    """docker-compose.yml is valid by the schema of the compose specification."""
    checker = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec"]
    answer = subprocess.run([*checker, str(ROOT / "docker-compose.yml")], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("image", [service["image"] for name, service in SERVICES.items() if name not in OURS])
def test_every_image_has_an_exact_version(image: str) -> None:
    """Each image has an exact version, not `latest` or a tag that moves; Freshet's is built from this repository."""
    assert EXACT.fullmatch(image)
    assert image.partition(":")[2].count(".") >= 2 or image.startswith("postgres:")  # PostgreSQL counts major.minor


def test_images_have_the_versions_of_one_machine() -> None:
    """Each server's image has the version that the tests run on one machine."""
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert images["kafka"] == f"apache/kafka:{POM['kafka.version']}"
    assert images["mariadb"] == f"mariadb:{POM['mariadb.version']}"
    assert {images[name] for name in OURS} == {"freshet:local"}


def test_our_image_is_built_from_exact_versions() -> None:
    """The Dockerfile pins base images, the installer, Python's packages and the connector's jars."""
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
    """The image runs as an ordinary user, in the folder that is on PYTHONPATH."""
    folders = re.findall(r"^WORKDIR (\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"PYTHONPATH={folders[-1]} " in DOCKERFILE
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["freshet"]


def test_our_image_holds_only_what_runs() -> None:
    """.dockerignore is an allow-list, so `.env`, git's history and a machine's state stay out of the image."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert allowed == folders - NOT_SHIPPED | {"pyproject.toml", "uv.lock"}


@pytest.mark.parametrize("name", [*SERVICES])
def test_others_wait_for_a_services_health_or_for_a_one_shots_success(name: str) -> None:
    """Every service has a health check for its dependants; a one-shot has none and does not restart."""
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
    """Databases start first, then accounts and tables, then Airflow; tasks wait for everything that they use."""
    waits = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    assert waits["airflow-migration"] == {"airflow-database"}
    assert waits["warehouse-accounts"] == {"mariadb"}
    assert all("airflow-migration" in waits[name] for name in AIRFLOW if name not in {*ONE_SHOTS, "airflow-scheduler"})
    assert waits["airflow-scheduler"] == {"airflow-api-server", "warehouse-accounts", "kafka", "spark-worker"}


@pytest.mark.parametrize("name", [*OURS])
def test_commands_are_programs_of_this_repository_or_spark(name: str) -> None:
    """Each command in the file is a program that exists."""
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


def test_airflow_has_the_commands_of_one_machine() -> None:
    """The file runs the same four Airflow components, with the same arguments, as one machine."""
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
    """Kafka has the same properties as on one machine, except for addresses and folders."""
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
    """MariaDB has the same options as on one machine, except for addresses, folders and the user."""
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
        "--skip-ssl",  # passwords cross the network between containers
    )
    options = mariadb.options(Settings.model_validate({}), tmp_path / "data")
    assert SERVICES["mariadb"]["command"] == [option for option in options if not option.startswith(of_machine)]


def test_every_setting_is_set_by_a_service_or_has_a_good_default() -> None:
    """Each setting is set by a service or is on the list of good defaults; a misspelt variable fails."""
    variables = {name for service in SERVICES for name in given(service) if name.startswith(PREFIX)}
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert variables <= known
    assert {name.removeprefix(PREFIX).lower() for name in known - variables} == GOOD_DEFAULTS


def test_every_variable_that_the_code_reads_is_a_setting() -> None:
    """Every variable that the code reads is a setting, except internal ones and the installer's interpreter."""
    internal = {stack.MARK, KEPT_BY, RUN_ID, "FRESHET_RUN", "FRESHET_PYTHON"}
    files = [
        file
        for name in ("services", "spark_apps", "plugins", "dags", "quality")
        for file in (ROOT / name).rglob("*.py")
    ]
    named = {name for file in files for name in re.findall(r"""["'](FRESHET_[A-Z_]+)["']""", file.read_text())}
    assert named - internal <= {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("name", ["scheduler", "dag-processor", "triggerer"])
def test_the_health_check_of_an_airflow_component_is_its_own(name: str) -> None:
    """Each Airflow component's health check asks that component."""
    assert SERVICES[f"airflow-{name}"]["healthcheck"]["test"][-1] == name.replace("-", "_")


@pytest.mark.parametrize(("name", "arguments"), AIRFLOW.items())
def test_airflow_finds_everything_and_nothing_on_its_own_loopback(
    name: str, arguments: list[str], inside: Callable[..., Settings]
) -> None:
    """The environment of each Airflow component has addresses of other containers only, none on loopback."""
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


def test_the_web_server_listens_on_its_containers_addresses(inside: Callable[..., Settings]) -> None:
    """The web server listens on its container's addresses, because other components call it."""
    assert inside("airflow-api-server").airflow_host == "0.0.0.0"  # noqa: S104  # its container's addresses


def test_tasks_find_kafka_the_warehouse_and_spark(inside: Callable[..., Settings]) -> None:
    """Tasks find Kafka, the warehouse and Spark by Airflow's connections; Spark's executors find the driver."""
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
def test_an_airflow_component_has_exactly_the_secrets_that_it_uses(
    name: str, arguments: list[str], inside: Callable[..., Settings], tmp_path: Path
) -> None:
    """A component starts with its secrets; without any one of them the error states its name."""

    def start(config: Settings) -> None:
        airflow.environment(config, arguments[0])
        if arguments == ["api-server"]:
            airflow.write_login(config)

    start(inside(name))
    assert list(tmp_path.iterdir()) == [tmp_path / "airflow"]
    for secret in secrets_of(name):
        with pytest.raises(SettingsError, match=f"^{PREFIX}{secret.upper()} is not set"):
            start(inside(name, without=secret))


def test_only_clients_of_the_warehouse_have_its_passwords(inside: Callable[..., Settings]) -> None:
    """Root creates the accounts, tasks use all others, and Spark's worker uses the loader only."""
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


def test_root_logs_in_from_the_servers_own_address_only(inside: Callable[..., Settings]) -> None:
    """Root logs in from the server's address only, so the one-shot that creates accounts shares its network."""
    assert OURS["warehouse-accounts"]["network_mode"] == "service:mariadb"
    assert login("root", inside("warehouse-accounts")).host == given("mariadb")["MARIADB_ROOT_HOST"] == "127.0.0.1"


@pytest.mark.parametrize("name", [*SERVICES])
def test_no_secret_is_in_the_file(name: str) -> None:
    """Each secret is a required reference to `.env`: no literal, no default, no empty value."""
    for variable, value in SERVICES[name].get("environment", {}).items():
        if variable.endswith(("_PASSWORD", "_KEY", "_SECRET")):
            assert REQUIRED.fullmatch(str(value)), variable
        assert "$" not in REQUIRED.sub("", str(value)), variable
        assert not re.search(r"//\w+:(?!\$\{\w+:\?)", str(value)) or "@" not in str(value), variable
    outside_environment = {key: value for key, value in SERVICES[name].items() if key != "environment"}
    assert "${" not in json.dumps(outside_environment)


def test_the_example_lists_the_required_variables_without_values() -> None:
    """`.env.example` lists every required variable; compose refuses an empty value."""
    lines = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and not line.startswith("#")]
    required = set(REQUIRED.findall((ROOT / "docker-compose.yml").read_text()))
    assert sorted(lines) == sorted(f"{name}=" for name in required)
    assert required == {PREFIX + name.upper() for name in SECRET_NAMES} | {"FRESHET_AIRFLOW_DATABASE_PASSWORD"}


def test_only_airflows_web_port_is_published() -> None:
    """The only published port is Airflow's web port, on the server's loopback."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"airflow-api-server": ["127.0.0.1:18080:18080"]}
    assert not [name for name, service in SERVICES.items() if service.get("network_mode", "").startswith("host")]


def test_what_must_outlive_a_container_is_in_a_named_volume() -> None:
    """Named volumes hold durable data: driver and executors share the state, Airflow's components share the logs."""
    mounts = {name: [mount.split(":") for mount in service.get("volumes", [])] for name, service in SERVICES.items()}
    assert {volume for mounted in mounts.values() for volume, _ in mounted} == set(COMPOSE["volumes"])
    users = {volume: {name for name in mounts if [volume, path] in mounts[name]} for volume, path in WHERE.items()}
    assert users["state"] == {"airflow-scheduler", "spark-worker"}
    assert users["airflow-logs"] == set(AIRFLOW) - ONE_SHOTS
    assert all(users[name] == {name} for name in ("kafka", "mariadb", "airflow-database"))


@pytest.mark.parametrize("service", [*health.CONTAINER_CHECKS])
def test_a_health_check_fails_in_one_line_when_nobody_answers(service: str, tmp_path: Path) -> None:
    """A health check that gets no answer fails with one line."""
    alone = ["unshare", "--net", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel does not let users create a network")
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
