"""Parts of SQL statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(names: Iterable[str], of: str = "") -> str:
    """Return columns as a statement lists them, each qualified by `of`, a table or alias, if it is given."""
    prefix = f"{of}." if of else ""
    return ", ".join(f"{prefix}`{name}`" for name in names)
