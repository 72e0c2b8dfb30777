"""The joins are a library: it installs alone, imports fast and compiles once."""

import contextlib
import doctest
import importlib
import importlib.metadata
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import semistream

ROOT = Path(__file__).parents[2]
README = ROOT / "semistream" / "README.md"
MODULES = [name for _, name, _ in pkgutil.walk_packages(semistream.__path__, "semistream.")]
OTHERS = {"pyspark", "kafka", "airflow", "pymysql", "pandas", "matplotlib"}
ROOMS = {"foundation", "spark_apps", "plugins", "dags", "services", "quality", "generator", "benchmarks", "tests"}


def _readme() -> tuple[str, str]:
    """Return the Python code of the README, and the output that it shows."""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    code, shown = ("".join(block for kind, block in blocks if kind == wanted) for wanted in ("python", "text"))
    assert code
    assert shown
    return code, shown


def _run(python: str | Path, code: str, folder: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or folder is None}
    command = [str(python), "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment).stdout


def test_the_example_in_the_docstring_works() -> None:
    """The example in the package's docstring runs as it is."""
    results = doctest.testmod(semistream)
    assert results.attempted == 6
    assert results.failed == 0


def test_the_readme_shows_what_its_code_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's examples run in the project's own environment."""
    monkeypatch.chdir(tmp_path)
    code, shown = _readme()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {})  # noqa: S102 - the project's own README
    assert printed.getvalue() == shown


def test_installs_alone_and_runs_the_readme(tmp_path: Path) -> None:
    """In an empty environment the package installs only its dependencies, and the README's examples run."""
    uv = shutil.which("uv") or str(ROOT / ".freshet" / "tools" / "bin" / "uv")
    environment, folder = tmp_path / "environment", tmp_path / "folder"
    folder.mkdir()
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), str(ROOT / "semistream")], check=True)
    listed = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    assert set(_run(python, listed, folder).split()) == {"semistream", "numba", "llvmlite", "numpy", "pyarrow"}
    code, shown = _readme()
    assert _run(python, code, folder) == shown
    typed = "import semistream, pathlib; print((pathlib.Path(semistream.__file__).parent / 'py.typed').exists())"
    assert _run(python, typed, folder) == "True\n"


@pytest.mark.parametrize("name", ["semistream", *MODULES])
def test_every_module_says_what_is_public(name: str) -> None:
    """`__all__` lists exactly the module's own public functions and classes."""
    module = importlib.import_module(name)
    public = set(module.__all__)
    assert public <= set(vars(module))
    own = {key for key, value in vars(module).items() if getattr(value, "__module__", None) == name}
    assert {key for key in own if not key.startswith("_")} <= public


def test_the_version_is_the_one_of_the_installed_package() -> None:
    """The version is defined in semistream/pyproject.toml only."""
    assert semistream.__version__ == importlib.metadata.version("semistream")


def test_imports_no_engine_broker_scheduler_driver_or_other_room() -> None:
    """No module of the library imports Spark, Kafka, Airflow, a database driver or another room of the project."""
    code = f"import importlib, sys\nfor name in {MODULES}: importlib.import_module(name)\nprint(*sys.modules)"
    imported = {name.split(".")[0] for name in _run(sys.executable, code).split()}
    assert not imported & (OTHERS | ROOMS)


def test_a_second_process_does_not_compile() -> None:
    """After `warm_up` machine code comes from numba's cache: a second process compiles nothing."""
    _run(sys.executable, "from semistream.warm_up import warm_up; warm_up()")
    count = """
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, e): compiled.append(e.data["dispatcher"].py_func.__name__)
    def on_end(self, e): pass
event.register("numba:compile", Listener())
from semistream.warm_up import warm_up
warm_up()
print(len(compiled), *compiled)
"""
    assert _run(sys.executable, count) == "0\n"


def test_after_warm_up_no_join_compiles_or_loads_a_kernel() -> None:
    """Every join, over every store and kind of key, with and without shedding, finds all its kernels loaded."""
    code = "from tests.semistream.cold_kernels import cold_kernels; print(*cold_kernels(), sep=chr(10))"
    assert not _run(sys.executable, code).strip()
