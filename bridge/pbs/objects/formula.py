# SPDX-License-Identifier: Apache-2.0
"""Evaluates `job_sort_formula` without executing it.

Rules
    1. Arithmetic (+ - * / // % **), comparisons, `and`, `or`, `not`, `A if C else B`, and the
       functions of `FUNCTIONS`. Names are variables; nothing else is accepted: no attributes, no
       subscripts, no strings.
    2. Everything is computed in floating point, so that no number can grow without bound. What has
       no finite value is an error.

A formula that is refused changes nothing: the jobs keep the order of their arrival.

Source: OpenPBS 23.06, pbs_server_attributes(7): job_sort_formula.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bridge.errors import BadRequest

MAX_LENGTH = 4096
MAX_TERMS = 500
MAX_DEPTH = 60
FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs, "min": min, "max": max, "round": lambda x: float(round(x)), "ceil": math.ceil,
    "floor": math.floor, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log10": math.log10,
    "pow": math.pow, "fabs": math.fabs, "trunc": math.trunc,
}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    text: str
    tree: ast.expr
    names: frozenset[str]

    def value(self, variables: Mapping[str, float]) -> float:
        """Returns its value; a variable that is not given is 0.

        Raises:
            BadRequest: it has no value because of a division by zero, or of too large a number.
        """
        try:
            found = float(_value(self.tree, variables))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise BadRequest(f"job_sort_formula has no value here: {error}") from None
        if not math.isfinite(found):
            raise BadRequest("job_sort_formula has no finite value here")
        return found


@lru_cache(maxsize=64)
def read_formula(text: str) -> Formula:
    """Reads a formula.

    Raises:
        BadRequest: it is too long, or not of rule 1.
    """
    if len(text) > MAX_LENGTH:
        raise BadRequest(f"job_sort_formula is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadRequest(f"job_sort_formula '{text[:60]}' is not an expression") from None
    names: set[str] = set()
    _examine(tree, names, [0], 0)
    return Formula(text, tree, frozenset(names))


_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: math.pow,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def _examine(node: ast.expr, names: set[str], seen: list[int], depth: int) -> None:
    seen[0] += 1
    if seen[0] > MAX_TERMS or depth > MAX_DEPTH:
        raise BadRequest(f"job_sort_formula has more than {MAX_TERMS} terms, or is nested too deep")
    parts: list[ast.expr]
    match node:
        case ast.Constant(value=int() | float()):
            parts = []
            if not math.isfinite(_constant(node)):
                raise BadRequest("job_sort_formula: a number is too large")
        case ast.Name(id=name):
            names.add(name)
            parts = []
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            parts = [left, right]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Not(), operand=operand):
            parts = [operand]
        case ast.BoolOp(values=values):
            parts = values
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARE for op in ops
        ):
            parts = [left, *others]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            parts = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            parts = args
        case _:
            raise BadRequest(
                f"job_sort_formula: {type(node).__name__} is not allowed; there are numbers, "
                f"resources, + - * / // % **, comparisons and {', '.join(sorted(FUNCTIONS))}"
            )
    for part in parts:
        _examine(part, names, seen, depth + 1)


def _constant(node: ast.Constant) -> float:
    try:
        return float(node.value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _value(node: ast.expr, variables: Mapping[str, float]) -> float:
    match node:
        case ast.Constant():
            return _constant(node)
        case ast.Name(id=name):
            return variables.get(name, 0.0)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_value(left, variables), _value(right, variables))
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, variables)
            if isinstance(op, ast.Not):
                return float(not value)
            return -value if isinstance(op, ast.USub) else value
        case ast.BoolOp(op=op, values=values):
            found = [bool(_value(each, variables)) for each in values]
            return float(all(found) if isinstance(op, ast.And) else any(found))
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_value(left, variables), *(_value(other, variables) for other in others)]
            return float(all(_COMPARE[type(o)](sides[i], sides[i + 1]) for i, o in enumerate(ops)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, variables) else orelse, variables)
        case ast.Call(func=ast.Name(id=name), args=args):
            return float(FUNCTIONS[name](*(_value(each, variables) for each in args)))
    raise BadRequest("job_sort_formula is not understood")
