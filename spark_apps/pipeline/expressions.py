"""Arithmetic on columns: checked when a pipeline's file is read, computed on Arrow columns.

The analysts' view has the same text as SQL.
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
# Numbers that SQL and Python read alike and that 64 bits hold.
_WORD, _NUMBER = re.compile(r"[\w.]+"), re.compile(r"\d{1,18}(\.\d{1,18})?")


def check_expression(text: str, columns: Collection[str], parameter: str) -> None:
    """Raise ValueError, which names the parameter, unless the text is arithmetic on at least one of the columns."""
    problem = (
        f"{parameter} must be arithmetic (+ - * / and brackets, numbers of at most 18 digits) on {', '.join(columns)}, "
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
    """Compute an expression that check_expression accepts.

    The result is an integer as long as 64 bits hold it, else a double. A division is always a double: as in SQL, it has
    a fraction.
    """
    return _compute(ast.parse(text, mode="eval").body, columns)


def _compute(node: ast.expr, columns: Mapping[str, pa.Array]) -> Any:  # noqa: ANN401  # an array or a number
    import pyarrow as pa  # not at the top: to check a pipeline's file, as Dags do, does not need it
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
                except pa.ArrowInvalid:  # the result has more than 64 bits: compute it as doubles
                    pass
            return operation(*(compute.cast(each, "float64", safe=False) for each in (a, b)))
    raise TypeError(f"an expression must be one that check_expression accepts, got {ast.dump(node)}")
