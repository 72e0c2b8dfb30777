"""Arithmetic on columns, written as SQL would: checked when a pipeline's file is read, computed on Arrow columns.

The analysts' view computes the same text in SQL.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pyarrow as pa

_OPERATIONS = {
    ast.Add: "add_checked", ast.Sub: "subtract_checked", ast.Mult: "multiply_checked", ast.Div: "divide",
}  # fmt: skip


# Numbers that SQL and Python read alike; what 64 bits hold.
_WORD, _NUMBER = re.compile(r"[\w.]+"), re.compile(r"\d{1,18}(\.\d{1,18})?")


def check_expression(text: str, columns: Collection[str], where: str) -> None:
    """Raise ValueError unless the text is arithmetic on at least one of the columns."""
    problem = (
        f"{where} must be arithmetic (+ - * / and brackets, numbers of at most 18 digits) on {', '.join(columns)}, "
        f"got {text!r}"
    )
    words = _WORD.findall(text)
    if not set(words) & set(columns) or not all(word in columns or _NUMBER.fullmatch(word) for word in words):
        raise ValueError(problem)
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
    """Compute a checked expression; a division has a fraction, as in SQL.

    Whole numbers stay whole as far as 64 bits hold them, all else is a double.
    """
    return _compute(ast.parse(text, mode="eval").body, columns)


def _compute(node: ast.expr, columns: Mapping[str, pa.Array]) -> Any:  # noqa: ANN401  # an array or a number
    import pyarrow as pa  # not by whoever checks a file, a Dag for one
    from pyarrow import compute

    match node:
        case ast.Name(id=name):
            column = columns[name]
            return column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.float64(), safe=False)
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _compute(left, columns), _compute(right, columns)
            operation = getattr(compute, _OPERATIONS[type(operator)])
            if not isinstance(operator, ast.Div):
                try:
                    return operation(a, b)
                except pa.ArrowInvalid:  # more than 64 bits
                    pass
            return operation(*(compute.cast(each, "float64", safe=False) for each in (a, b)))
    raise TypeError(f"not an expression that check_expression lets pass: {ast.dump(node)}")
