"""Find a Chromium for the tests of the page, or install one: `python3 -m services.browser`, which `make test` calls.

In this order: one on the PATH; Debian's package, if root runs this; the download of Playwright, the library that the
tests use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from foundation.settings import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome")
DOWNLOADS = ROOT / ".freshet" / "browsers"
SECONDS = 300


def find() -> str | None:
    """Return the path of a Chromium, or None."""
    on_path = next(filter(None, map(shutil.which, NAMES)), None)
    downloaded = next(DOWNLOADS.glob("chromium-*/chrome-linux*/chrome"), None)
    return on_path or (str(downloaded) if downloaded else None)


def install() -> str:
    """Install a Chromium; return why that failed, or an empty text."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("  installing Debian's package chromium, for the tests of the page", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        steps = [
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ]
    else:
        print("  downloading a Chromium, for the tests of the page", flush=True)
        environment = {**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(DOWNLOADS)}
        steps = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    for step in steps:
        try:
            done = subprocess.run(step, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"{' '.join(step)} did not end within {SECONDS} s"
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            return f"{' '.join(step)}: {(lines or ['no output'])[-1].strip()}"
    return ""


def main() -> None:
    """Say which browser the tests will use."""
    why = "" if find() else install()
    found = find()
    if found:
        print(f"  the page is tested in {found}", flush=True)
    else:
        print(f"  no Chromium can be had, so tests in a browser are skipped ({why}). Install one, for example the "
              "package chromium.", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
