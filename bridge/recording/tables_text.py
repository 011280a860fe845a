# SPDX-License-Identifier: Apache-2.0
"""Converts frozen dataclasses to plain JSON and back, guided only by their annotations.

Terms
    plain   data of JSON: numbers, text, truth values, lists and objects of them.
    hint    an annotation; it alone decides what type plain data becomes, never the data.

Rules
    1. A column of one value throughout is written `{"shape": [...], "all": value}`; a flat one as a
       list; others `{"shape": [...], "values": [...]}`, row by row.
    2. A column of objects, or a tuple with repeated members, is written
       `{"of": [distinct ...], "at": [positions ...]}`.
    3. A dataclass is an object of its fields. A missing field takes its default, if any, so that
       files remain readable after a field has been added. An unknown field is refused.
    4. Integers are exact: values out of a column's range are refused, not truncated.
    5. A part of an extension (`bridge.model.parts`) is written like a field, under the extension's
       name or the key that `KEYS` has for it; one that says `among_fields`: field by field. A part
       of length 0 is none.
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.extension_packages import installed
from bridge.files import MIB, MemoryBudget
from bridge.model.job_columns import ELEMENT, columns, dtype_of, objects
from bridge.model.parts import NO_PARTS, is_among_fields
from bridge.model.plan import Plan

MAX_VALUES = 100_000_000
"""Maximum number of values of one column."""

MAX_MEMORY_BYTES: Final = 512 * MIB
"""Memory that the columns of a value may need, bytes."""

_POSITION_B: Final = 24
"""Memory of a member that occurs before: its place in two lists, and a number."""

_PARTS: Final = "parts"

KEYS: Final[dict[tuple[str, str], str]] = {}
"""(dataclass, field) to the key in files, if that differs from the name of the field."""


class Wrong(ValueError):
    """Plain data does not fit its hint; `field` says where."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


# ------------------------------------------------------------ to plain


def to_plain(value: Any, hint: Any, element: Any = str) -> Any:
    """Writes a value of a hint as plain data.

    Args:
        element: hint of the elements, for a column of objects.

    Raises:
        TypeError: there is no plain form for the hint.
    """
    if value is None:
        return None
    hint = _not_none(hint)
    origin = typing.get_origin(hint)
    if (dtype := dtype_of(hint)) is not None:
        return _column_to_plain(value, dtype, element)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        plain = {
            _key(hint, name): to_plain(getattr(value, name), each, _element(hint, name))
            for name, each in _fields(hint).items()
        }
        for name, part in getattr(value, _PARTS, NO_PARTS).items():
            fields = to_plain(part, type(part))
            plain |= fields if is_among_fields(type(part)) else {_key(hint, name): fields}
        return plain
    if origin is tuple:
        return _tuple_to_plain(value, typing.get_args(hint))
    if origin is frozenset:
        return sorted(to_plain(one, typing.get_args(hint)[0]) for one in value)
    if origin in (dict, Mapping):
        key, each = typing.get_args(hint)
        if key is not str:
            raise TypeError(f"no plain form for keys of {hint}")
        return {str(name): to_plain(one, each) for name, one in value.items()}
    if origin is list:
        return [to_plain(one, typing.get_args(hint)[0]) for one in value]
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return int(value)
    if hint in (int, bool, float, str):
        return hint(value)
    if hint is object:
        return _any_to_plain(value)
    raise TypeError(f"no plain form for {hint}")


def _column_to_plain(value: NDArray[Any], dtype: np.dtype[Any], element: Any) -> Any:
    if dtype.kind == "O":
        return _distinct(value.tolist(), element)
    column = np.asarray(value)
    if column.dtype != dtype:
        column = column.astype(dtype, casting="same_kind")
    shape = list(column.shape)
    if column.size and (column == column.flat[0]).all():
        return {"shape": shape, "all": column.flat[0].item()}
    values = column.ravel().tolist()
    return values if len(shape) == 1 else {"shape": shape, "values": values}


def _tuple_to_plain(value: tuple[Any, ...], hints: tuple[Any, ...]) -> Any:
    if len(hints) == 2 and hints[1] is Ellipsis:
        if len(value) > len(set(value)) if _hashable(hints[0]) else False:
            return _distinct(value, hints[0])
        return [to_plain(one, hints[0]) for one in value]
    return [to_plain(one, each) for one, each in zip(value, hints, strict=True)]


def _hashable(hint: Any) -> bool:
    """Whether values of a hint can be compared as a whole: those without columns can."""
    hint = _not_none(hint)
    if dtype_of(hint) is not None:
        return False
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return all(_hashable(each) for each in _fields(hint).values())
    return typing.get_origin(hint) not in (dict, Mapping, list) and hint is not object


def _distinct(values: typing.Iterable[Any], hint: Any) -> dict[str, Any]:
    known: dict[Any, int] = {}
    at = [known.setdefault(value, len(known)) for value in values]
    return {"of": [to_plain(value, hint) for value in known], "at": at}


def _any_to_plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _any_to_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_any_to_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)  # dates of YAML


# ------------------------------------------------------------ from plain


def from_plain(
    data: Any, hint: Any, field: str = "", element: Any = str, budget: MemoryBudget | None = None
) -> Any:
    """Makes a value of a hint from untrusted plain data.

    Args:
        hint: what it must be.
        field: its name, for messages.
        element: hint of the elements, for a column of objects.
        budget: what the columns are counted in; None: `MAX_MEMORY_BYTES`.

    Raises:
        Wrong: it is something else.
        OSError: its columns would need too much memory.
    """
    return _Reading(budget or MemoryBudget(MAX_MEMORY_BYTES)).value(data, hint, field, element)


@dataclasses.dataclass(frozen=True)
class _Reading:
    """Columns are counted before they are made: `{"shape": [100000000], "all": 0}` is short."""

    budget: MemoryBudget

    def value(self, data: Any, hint: Any, field: str, element: Any = str) -> Any:
        whole = hint
        hint = _not_none(hint)
        if data is None and hint is not object:
            if whole is hint:
                raise Wrong(field, "is missing")
            return None
        origin = typing.get_origin(hint)
        if (dtype := dtype_of(hint)) is not None:
            return self._column(data, dtype, field, element)
        if dataclasses.is_dataclass(hint):
            return self._dataclass(data, hint, field)
        if origin is tuple:
            return self._tuple(data, typing.get_args(hint), field)
        if origin in (frozenset, list):
            each = typing.get_args(hint)[0]
            members = _list(data, field)
            return origin(self.value(one, each, f"{field}[{i}]") for i, one in enumerate(members))
        if origin in (dict, Mapping):
            each = typing.get_args(hint)[1]
            return {
                name: self.value(one, each, f"{field}.{name[:40]}")
                for name, one in _object(data, field).items()
            }
        return _scalar(data, hint, field)

    def _dataclass(self, data: Any, hint: Any, field: str) -> Any:
        given, hints, parts = _object(data, field), _fields(hint), _parts(hint)
        names = {_key(hint, name) for name in hints}.union(*(keys for keys, _ in parts.values()))
        for name in given:
            if name not in names:
                raise Wrong(_join(field, name[:40]), "is an unknown field: from a newer version?")
        made = {}
        for known in dataclasses.fields(hint):
            key = _key(hint, known.name)
            if key in given and known.name in hints:
                made[known.name] = self.value(
                    given[key],
                    hints[known.name],
                    _join(field, key),
                    _element(hint, known.name),
                )
            elif (
                known.default is dataclasses.MISSING
                and known.default_factory is dataclasses.MISSING
            ):
                raise Wrong(_join(field, key), "is missing")
        for name, (keys, kind) in parts.items():
            there = {key: given[key] for key in keys if given.get(key) is not None}
            if not there:
                continue
            if is_among_fields(kind):
                part = self._dataclass(there, kind, field)
            else:
                part = self.value(there[keys[0]], kind, _join(field, keys[0]))
            if part:
                made[_PARTS] = made.get(_PARTS, NO_PARTS).having(name, part)
        return hint(**made)

    def _tuple(self, data: Any, hints: tuple[Any, ...], field: str) -> tuple[Any, ...]:
        if len(hints) == 2 and hints[1] is Ellipsis:
            if isinstance(data, dict):
                return tuple(self._spread(data, hints[0], field))
            members = _list(data, field)
            return tuple(
                self.value(one, hints[0], f"{field}[{i}]") for i, one in enumerate(members)
            )
        members = _list(data, field)
        if len(members) != len(hints):
            raise Wrong(field, f"has {len(members)} members where {len(hints)} belong")
        return tuple(
            self.value(one, each, f"{field}[{i}]")
            for i, (one, each) in enumerate(zip(members, hints, strict=True))
        )

    def _spread(self, data: Any, hint: Any, field: str) -> list[Any]:
        """The members of `{"of": ..., "at": ...}`."""
        given = _object(data, field)
        if set(given) != {"of", "at"}:
            raise Wrong(field, 'must have "of" and "at"')
        distinct = _list(given["of"], f"{field}.of")
        made = [self.value(one, hint, f"{field}.of[{i}]") for i, one in enumerate(distinct)]
        at = self._column(given["at"], np.dtype(np.int64), f"{field}.at", None)
        if at.ndim != 1 or (len(at) and not 0 <= int(at.min()) <= int(at.max()) < len(made)):
            raise Wrong(f"{field}.at", f"points outside of {len(made)} values")
        self.budget.take(_POSITION_B * len(at))
        return [made[position] for position in at.tolist()]

    def _column(self, data: Any, dtype: np.dtype[Any], field: str, element: Any) -> NDArray[Any]:
        if dtype.kind == "O":
            return objects(self._spread(data, element, field))
        if isinstance(data, list):
            return self._numbers(data, dtype, field)
        given = _object(data, field)
        shape = given.get("shape")
        if (
            not isinstance(shape, list)
            or not all(type(size) is int and size >= 0 for size in shape)
            or not 1 <= len(shape) <= 2
            or max(shape) > MAX_VALUES
            or math.prod(shape) > MAX_VALUES
        ):
            raise Wrong(
                f"{field}.shape", f"is {_shown(shape)}: one or two possible sizes belong there"
            )
        if set(given) == {"shape", "all"}:
            self.budget.take(math.prod(shape) * dtype.itemsize)
            return np.full(shape, _numbers([given["all"]], dtype, field)[0], dtype=dtype)
        if set(given) != {"shape", "values"}:
            raise Wrong(field, 'must have "shape" and either "all" or "values"')
        flat = self._numbers(_list(given["values"], field), dtype, field)
        if len(flat) != math.prod(shape):
            raise Wrong(field, f"has {len(flat)} values where {math.prod(shape)} belong")
        table: NDArray[Any] = flat.reshape(shape)
        return table

    def _numbers(self, data: list[Any], dtype: np.dtype[Any], field: str) -> NDArray[Any]:
        self.budget.take(len(data) * dtype.itemsize)
        return _numbers(data, dtype, field)


def _scalar(data: Any, hint: Any, field: str) -> Any:
    if hint is object:
        return data
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        if type(data) is not int or data not in hint._value2member_map_:
            raise Wrong(field, f"is {_shown(data)}, no {hint.__name__}")
        return hint(data)
    kinds = {int: "a whole number", bool: "true or false", float: "a number", str: "text"}
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        data = float(data) if abs(data) < 2**63 else math.inf
    if type(data) is not hint or (hint is float and not math.isfinite(data)):
        raise Wrong(field, f"is {_shown(data)}, not {kinds[hint]}")
    return data


def _numbers(data: list[Any], dtype: np.dtype[Any], field: str) -> NDArray[Any]:
    kinds: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}
    allowed = kinds[dtype.kind]
    for position, value in enumerate(data):
        if type(value) not in allowed:
            raise Wrong(f"{field}[{position}]", f"is {_shown(value)}, no {dtype} value")
    try:
        column = np.array(data, dtype=dtype)
    except OverflowError:
        raise Wrong(field, f"has a number beyond {dtype}") from None
    if dtype.kind == "f" and not np.isfinite(column).all():
        raise Wrong(field, "has a number that is not finite")
    return column


def _object(data: Any, field: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Wrong(field, f"is {_shown(data)}, not an object")
    return data


def _list(data: Any, field: str) -> list[Any]:
    if not isinstance(data, list):
        raise Wrong(field, f"is {_shown(data)}, not a list")
    return data


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


# ------------------------------------------------------------ hints


def _key(owner: Any, name: str) -> str:
    return KEYS.get((owner.__name__, name), name)


@functools.cache
def _element(owner: Any, name: str) -> Any:
    """Hint of the elements of a column of objects; text where the column does not say."""
    return next((ELEMENT.get(each.unit, str) for each in columns(owner) if each.name == name), str)


@functools.cache
def _fields(hint: Any) -> dict[str, Any]:
    """Name and hint of each field that is given at construction and has a plain form."""
    hints = typing.get_type_hints(hint)
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(hint)
        if field.init and field.name != _PARTS
    }


@functools.cache
def _parts(hint: Any) -> Mapping[str, tuple[tuple[str, ...], type]]:
    """Name of each extension that may add a part, to its keys and the type of the part."""
    if _PARTS not in {field.name for field in dataclasses.fields(hint)}:
        return {}
    kinds = {
        name: extension.plan if hint is Plan else extension.nodes
        for name, extension in installed().by_name.items()
    }
    return {
        name: (tuple(_fields(kind)) if is_among_fields(kind) else (_key(hint, name),), kind)
        for name, kind in kinds.items()
        if kind is not None
    }


def _not_none(hint: Any) -> Any:
    """The hint without `| None`; further alternatives have no plain form."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(hint) if each is not type(None)]
        if len(rest) == 1:
            return rest[0]
    return hint
