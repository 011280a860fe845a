# SPDX-License-Identifier: Apache-2.0
"""Reads YAML written by users: plain values of bounded size and depth, without duplicate keys.

An alias counts each time it is used, because a few lines of nested aliases can expand to more
values than fit into memory.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from bridge import files
from bridge.errors import ConfigError

MAX_VALUES: Final = 200_000
MAX_DEPTH: Final = 50
MAX_CHARACTERS: Final = 1 << 20

_Read = TypeVar("_Read")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoYaml(ValueError):
    """It cannot be read; `where` is the line and column, if known."""

    def __init__(self, problem: str, where: str = "") -> None:
        self.problem, self.where = problem, where
        super().__init__(f"{where}: {problem}" if where else problem)


class _Loader(_Base):  # type: ignore[misc]
    """No key may occur twice, because it would be undefined which one counts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = getattr(key_node, "value", None)
            if isinstance(key, str) and key != "<<":
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key '{key:.60}' is listed twice", key_node.start_mark
                    )
                seen.add(key)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
"""YAML 1.1 takes `2e-05` for text; YAML 1.2 and JSON, which programs write, for a number."""


def load(text: str) -> Any:
    """Reads a text.

    Raises:
        NoYaml: it is not one, is too large, or says something that cannot be held.
    """
    if len(text) > MAX_CHARACTERS:
        raise NoYaml(f"longer than {MAX_CHARACTERS} characters")
    depth = values = 0
    try:
        # Events are not kept; nodes, which come next, need hundreds of bytes each.
        for event in yaml.parse(text, Loader=_Base):
            values += isinstance(event, yaml.NodeEvent)
            if values > MAX_VALUES:
                raise NoYaml(f"more than {MAX_VALUES} values", _where(event.start_mark))
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise NoYaml("nested too deeply", _where(event.start_mark))
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None
            _measure(root)
            return loader.construct_document(root)
        finally:
            loader.dispose()
    except NoYaml:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        if "nesting depth" in problem:  # libyaml has a limit of its own since 0.2.6
            problem = "nested too deeply"
        raise NoYaml(f"{problem:.200}", _where(mark)) from error
    except RecursionError as error:
        raise NoYaml("nested too deeply") from error
    except (ValueError, OverflowError, TypeError) as error:  # a date or a number that is none
        raise NoYaml(f"{error}"[:200]) from error


def _where(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


def _measure(root: yaml.Node) -> None:
    """Refuses more values than are bearable, aliases followed.

    Raises:
        NoYaml: there are, or one contains itself.
    """
    known: dict[int, tuple[int, int]] = {}
    within: set[int] = set()

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Values in it, and how deep it is."""
        if id(node) in known:
            return known[id(node)]
        if id(node) in within:
            raise NoYaml("a value contains itself", _where(node.start_mark))
        within.add(id(node))
        size, depth = 1, 0
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        for part in inner:
            more, below = measure(part)
            size, depth = size + more, max(depth, below + 1)
        if size > MAX_VALUES:
            raise NoYaml(f"more than {MAX_VALUES} values", _where(node.start_mark))
        if depth > MAX_DEPTH:
            raise NoYaml("nested too deeply", _where(node.start_mark))
        within.discard(id(node))
        known[id(node)] = size, depth
        return size, depth

    measure(root)


def read(path: Path, parse: Callable[[Any], _Read]) -> _Read:
    """What `parse` makes of the value of a file; its errors name the file.

    Raises:
        ConfigError: the file cannot be read, is no YAML, or `parse` raised one.
    """
    try:
        return parse(load(files.read_text(path)))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=str(path)) from None
    except (NoYaml, UnicodeDecodeError) as error:
        raise ConfigError("", f"is neither YAML nor JSON: {error}", file=str(path)) from None
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, file=str(path)) from None
