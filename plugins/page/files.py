"""The files that the browser loads: our own, and the chart library with its licence, from the jar that Maven brings."""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from foundation.errors import UnfitError
from foundation.settings import settings

OWN = Path(__file__).parent / "web"
IN_JAR = {"chart.umd.min.js": "dist/chart.umd.min.js", "chart-licence.md": "LICENSE.md"}
NAMES = (*sorted(file.name for file in OWN.iterdir()), *IN_JAR)


@cache
def content(name: str) -> tuple[bytes, str]:
    """Return a file's bytes and its media type."""
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    return (_of_library(IN_JAR[name]) if name in IN_JAR else (OWN / name).read_bytes()), kind


def _of_library(path: str) -> bytes:
    jar = next((settings().jars / "page").glob("chart.js-*.jar"), None)
    if jar is None:
        raise UnfitError(f"the chart library must be in {settings().jars / 'page'}, but is not", "Type: make install")
    with ZipFile(jar) as archive:
        inside = next(name for name in archive.namelist() if name.endswith("/" + path))
        return archive.read(inside)
