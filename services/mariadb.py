"""Run the warehouse's MariaDB on 127.0.0.1: `python -m services.mariadb`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from foundation.errors import SettingsError
from foundation.settings import ROOT, Settings, settings

# Runs before the server has ever listened: nobody can meet an account without a password. The password comes by
# standard input, so no process list shows it.
FIRST_STATEMENTS = """\
FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';
DROP DATABASE IF EXISTS test;
FLUSH PRIVILEGES;
CREATE USER root@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
"""


def main() -> None:
    """Make the data folder at first start, then become the server."""
    chosen = settings()
    home = chosen.state / "mariadb"
    data = home / "data"
    if not data.exists():
        create_data_folder(chosen, data)
    temporary_folder(data).mkdir(exist_ok=True)
    os.execv(server(chosen), [server(chosen), *options(chosen, data)])


def create_data_folder(chosen: Settings, data: Path) -> None:
    """Initialise a data folder whose only account is root, with a password."""
    half = data.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True, mode=0o700)
    base = base_folder(chosen)
    installer = next(base.glob("*/mariadb-install-db"))
    install = [str(installer), "--no-defaults", f"--basedir={base}", f"--datadir={half}", *run_as()]
    subprocess.run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"], check=True)
    bootstrap = [server(chosen), "--no-defaults", f"--basedir={base}", f"--datadir={half}", "--bootstrap", *run_as()]
    statements = FIRST_STATEMENTS.format(password=chosen.secret("root_password"))
    subprocess.run(bootstrap, check=True, input=statements.encode())
    half.rename(data)


def options(chosen: Settings, data: Path) -> list[str]:
    """Return the server's options; everything else is MariaDB's default."""
    return [
        "--no-defaults",
        f"--basedir={base_folder(chosen)}",
        f"--datadir={data}",
        "--socket=mariadb.sock",  # relative to the data folder: a long path to the clone does no harm
        f"--pid-file={data.parent / 'mariadb.pid'}",
        f"--tmpdir={temporary_folder(data)}",  # a server that starts removes temporary tables, of others too
        "--bind-address=127.0.0.1",
        f"--port={chosen.mariadb_port}",
        "--skip-name-resolve",
        "--skip-ssl",  # on the loopback; the certificate that it would make costs ten seconds at each start
        "--character-set-server=utf8mb4",
        "--default-time-zone=+00:00",
        "--innodb-buffer-pool-size=256M",
        "--max-allowed-packet=64M",  # Kafka's largest message is 16M; a rejected one is kept whole
        *run_as(),
    ]


def temporary_folder(data: Path) -> Path:
    """Where this server, and no other one, keeps temporary tables that are too large for memory."""
    return data.parent / "tmp"


def server(chosen: Settings) -> str:
    """Return the path of mariadbd."""
    named = ROOT / ".freshet" / "mariadb" / "bin" / "mariadbd" if chosen.mariadbd == "bundled" else chosen.mariadbd
    found = shutil.which(named)
    if found is None:
        raise SettingsError(f"FRESHET_MARIADBD: no program {str(named)!r}", "Name one that is there, or unset it.")
    return str(Path(found).resolve())


def base_folder(chosen: Settings) -> Path:
    """Return the folder that the server was installed in."""
    return Path(server(chosen)).parents[1]


def run_as() -> list[str]:
    """Return the option without which mariadbd refuses to run for root."""
    return ["--user=root"] if os.geteuid() == 0 else []


if __name__ == "__main__":
    main()
