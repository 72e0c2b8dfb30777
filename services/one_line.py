"""End a program with one line that says what went wrong and what to do next, never with a traceback.

This file imports only the standard library and works on old Pythons: the installer runs it on the system's Python,
before there is a virtual environment.
"""

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foundation.errors import FreshetError

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130  # the exit code after Ctrl-C


@contextmanager
def one_line(program: str = "freshet") -> "Iterator[None]":
    """End the program when the block fails: exit code 1 and one line on standard error; exit code 130 after Ctrl-C.

    Args:
        program: the line's first word.
    """
    try:
        yield
    except FreshetError as error:
        sys.exit(f"{program}: {' '.join(str(error).split())}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{program}: {error.cmd[0]} ended with exit code {error.returncode}. Its own output is above.")
    except OSError as error:
        sys.exit(f"{program}: {error}. Check that path, then run the same command again.")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
