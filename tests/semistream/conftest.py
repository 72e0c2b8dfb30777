"""A MariaDB server for these tests, with data and socket in a temporary folder and no network."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

ROOT = Path(__file__).parents[2]
SERVER = Path(os.environ.get("FRESHET_MARIADB", ROOT / ".freshet" / "mariadb"))
PATIENCE = 60  # seconds

Connect = Callable[[], Any]


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Start the server; return a function that opens a connection to its database `test`."""
    home = tmp_path_factory.mktemp("mariadb")
    home.chmod(0o700)
    data, socket = home / "data", home / "s"
    user = ["--user=root"] if os.geteuid() == 0 else []
    base = ["--no-defaults", f"--basedir={SERVER}", f"--datadir={data}", *user]
    installer = next(SERVER.glob("*/mariadb-install-db"))
    subprocess.run([str(installer), *base, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    options = [f"--socket={socket}", "--skip-networking", "--skip-ssl", "--innodb-buffer-pool-size=32M"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen([str(SERVER / "bin" / "mariadbd"), *base, *options], stdout=log, stderr=log)

    def connect() -> Any:  # noqa: ANN401 - pymysql has no types of its own here
        return pymysql.connect(unix_socket=str(socket), user="root", database="test")

    try:
        deadline = time.monotonic() + PATIENCE
        while not socket.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.1)
            assert server.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline, f"the server must listen within {PATIENCE} s"
        yield connect
    finally:
        server.terminate()
        server.wait(PATIENCE)
