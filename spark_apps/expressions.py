"""Arithmetic on columns, written as SQL would: checked when a pipeline's file is read, computed on Arrow columns.

The analysts' view computes the same text in SQL.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

_OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}


def check_expression(text: str, columns: Iterable[str], where: str) -> None:
    """Raise ValueError unless the text is arithmetic on the columns."""
    problem = f"{where} must be arithmetic (+ - * / and brackets) on {', '.join(columns)}, got {text!r}"
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        raise ValueError(problem) from None
    for node in ast.walk(tree):
        known_name = isinstance(node, ast.Name) and node.id in set(columns)
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        shape = isinstance(node, (ast.Expression, ast.BinOp, ast.Load, *_OPERATIONS))
        if not (known_name or number or shape):
            raise ValueError(problem)


def compute_expression(text: str, columns: Mapping[str, pa.Array]) -> pa.Array:
    """Compute a checked expression; a division has a fraction, as in SQL."""
    return _compute(ast.parse(text, mode="eval").body, columns)


def _compute(node: ast.expr, columns: Mapping[str, pa.Array]) -> Any:  # noqa: ANN401  # an array or a number
    from pyarrow import compute

    match node:
        case ast.Name(id=name):
            return columns[name]
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _compute(left, columns), _compute(right, columns)
            if isinstance(operator, ast.Div):
                a = compute.cast(a, "float64")
            return getattr(compute, _OPERATIONS[type(operator)])(a, b)
    raise TypeError(f"not an expression that check_expression lets pass: {ast.dump(node)}")
