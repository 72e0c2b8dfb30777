"""Run the warehouse's MariaDB on 127.0.0.1: `python -m services.mariadb`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from foundation.errors import SettingsError
from foundation.settings import ROOT, Settings, settings
from services.one_line import one_line

# These statements run before the server listens for the first time, so nobody can use an account without a password.
# The server reads them from standard input, so no process list shows the password.
FIRST_STATEMENTS = """\
FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';
DROP DATABASE IF EXISTS test;
FLUSH PRIVILEGES;
CREATE USER root@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
"""


def main() -> None:
    """Create the data folder at the first start, then replace this process with the server."""
    config = settings()
    home = config.state / "mariadb"
    data = home / "data"
    if not data.exists():
        create_data_folder(config, data)
    temporary_folder(data).mkdir(exist_ok=True)
    os.execv(server(config), [server(config), *options(config, data)])


def create_data_folder(config: Settings, data: Path) -> None:
    """Create a data folder whose only account is root, with a password."""
    half = data.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True, mode=0o700)
    base = base_folder(config)
    installer = next(base.glob("*/mariadb-install-db"))
    install = [str(installer), "--no-defaults", f"--basedir={base}", f"--datadir={half}", *run_as()]
    subprocess.run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"], check=True)
    bootstrap = [server(config), "--no-defaults", f"--basedir={base}", f"--datadir={half}", "--bootstrap", *run_as()]
    statements = FIRST_STATEMENTS.format(password=config.secret("root_password"))
    subprocess.run(bootstrap, check=True, input=statements.encode())
    half.rename(data)


def options(config: Settings, data: Path) -> list[str]:
    """Return the server's options; everything else is MariaDB's default."""
    return [
        "--no-defaults",
        f"--basedir={base_folder(config)}",
        f"--datadir={data}",
        "--socket=mariadb.sock",  # relative to the data folder: the path of a socket has at most 107 bytes
        f"--pid-file={data.parent / 'mariadb.pid'}",
        f"--tmpdir={temporary_folder(data)}",  # not /tmp: a server removes all temporary tables there when it starts
        "--bind-address=127.0.0.1",
        f"--port={config.mariadb_port}",
        "--skip-name-resolve",
        "--skip-ssl",  # clients use the loopback, and creating a certificate costs ten seconds at each start
        "--character-set-server=utf8mb4",
        "--default-time-zone=+00:00",
        "--innodb-buffer-pool-size=256M",
        "--max-allowed-packet=64M",  # a message in Kafka has up to 16M, and a rejected event is stored whole
        *run_as(),
    ]


def temporary_folder(data: Path) -> Path:
    """Return the folder for temporary tables that are too large for memory; only this server uses it."""
    return data.parent / "tmp"


def server(config: Settings) -> str:
    """Return the path of mariadbd."""
    named = ROOT / ".freshet" / "mariadb" / "bin" / "mariadbd" if config.mariadbd == "bundled" else config.mariadbd
    found = shutil.which(named)
    if found is None:
        raise SettingsError(
            f"FRESHET_MARIADBD must be the path of a mariadbd, got {str(named)!r}, which is not an executable file",
            "Correct the path, or unset it.",
        )
    return str(Path(found).resolve())


def base_folder(config: Settings) -> Path:
    """Return the folder in which the server is installed."""
    return Path(server(config)).parents[1]


def run_as() -> list[str]:
    """Return the option that mariadbd requires when root starts it."""
    return ["--user=root"] if os.geteuid() == 0 else []


if __name__ == "__main__":
    with one_line():
        main()
