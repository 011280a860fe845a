# SPDX-License-Identifier: Apache-2.0
"""Reads what qstat and pbsnodes print with `-F json`, which is not always JSON.

Rules
    1. Every value becomes the text that was printed: `1e5` and `007` are names of jobs.
    2. The commands print one attribute a line. Values that only look like numbers (`nan`, `+3`,
       `1.`) are printed bare, and a backslash in a text alone: such a line is read as a text, and
       named in `problems`. An object that still cannot be read is left out, and named.
    3. Bytes that are not UTF-8 are replaced.
    4. An output that ends early, or is something else, is an error: jobs must not seem to have
       left.
    5. Instants are dates in UTC (`TZ` of the command), and become Unix seconds.

Source: outputs of OpenPBS 23.06.06.
"""

import calendar
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.pbs.tables import Attributes, Objects

_ATTRIBUTE = re.compile(r'(\s*"((?:[^"\\]|\\.)*)":)(.*?)(,?)')
_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_INSTANTS = frozenset((
    "ctime", "mtime", "qtime", "etime", "stime", "obittime", "Execution_Time", "reserve_start",
    "reserve_end", "start_time",
))  # fmt: skip
_OBJECT = " " * 8
"""Indentation of the objects: jobs, vnodes, queues, servers."""
_MAX_SHOWN = 60


class NotJson(ValueError):
    """The output is not what these commands print."""


@dataclass(frozen=True)
class Printed:
    """An output.

    Attributes:
        problems: one line for each value that was repaired and each object that was left out.
    """

    objects: Objects
    problems: tuple[str, ...] = ()


def read_output(output: bytes, section: str) -> Printed:
    """Reads an output.

    Args:
        section: where its objects are: "Jobs", "nodes", "Queue", "Server".

    Raises:
        NotJson: it is not complete, or something else.
    """
    written = output.decode("utf-8", "replace")
    problems: list[str] = []
    try:
        found = _loaded(written)
    except ValueError:
        lines = written.rstrip().splitlines()
        if not lines or lines[0] != "{" or lines[-1] != "}":
            shown = " ".join(written.split())[:_MAX_SHOWN]
            raise NotJson(f"printed no complete JSON: '{shown}'") from None
        lines = _repaired(lines, problems)
        try:
            found = _loaded("\n".join(lines))
        except ValueError:
            found = {section: _one_by_one(lines, problems)}
    if not isinstance(found, dict):
        raise NotJson("printed something else than objects")
    objects = found.get(section, {})
    if not isinstance(objects, dict):
        raise NotJson(f"printed '{section}' that is not an object")
    return Printed(
        {name: _attributes(held) for name, held in objects.items() if isinstance(held, dict)},
        tuple(problems),
    )


def _loaded(written: str) -> Any:
    return json.loads(written, parse_int=str, parse_float=str, parse_constant=str, strict=False)


def _repaired(lines: list[str], problems: list[str]) -> list[str]:
    found, name = [], ""
    for line in lines:
        matched = _ATTRIBUTE.fullmatch(line)
        if matched is None or matched.group(3) in ("{", "["):
            if matched is not None and line.startswith(_OBJECT + '"'):
                name = matched.group(2)
            found.append(line)
            continue
        head, attribute, value, comma = matched.groups()
        try:
            _loaded(value)
        except ValueError:
            bare = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
            problems.append(
                f"{name[:_MAX_SHOWN]}: {attribute[:_MAX_SHOWN]} is printed as invalid JSON, and "
                f"read as the text '{bare[:_MAX_SHOWN]}'"
            )
            found.append(f"{head}{json.dumps(bare)}{comma}")
        else:
            found.append(line)
    return found


def _one_by_one(lines: list[str], problems: list[str]) -> dict[str, Any]:
    """The objects of which each can be read."""
    objects: dict[str, Any] = {}
    first = None
    for at, line in enumerate(lines):
        if line.startswith(_OBJECT + '"') and line.endswith("{"):
            first = at
        elif first is not None and line.rstrip(",") == _OBJECT + "}":
            whole, first = lines[first : at + 1], None
            try:
                objects |= _loaded("{" + "\n".join(whole).rstrip(",") + "}")
            except ValueError:
                name = whole[0].strip().strip('":{')[:_MAX_SHOWN]
                problems.append(f"{name}: is left out: it is printed as invalid JSON")
    return objects


def _attributes(held: Mapping[str, Any]) -> Attributes:
    return {_readable(name): _value(name, value) for name, value in held.items()}


def _value(name: str, value: Any) -> str | dict[str, str]:
    if isinstance(value, dict):
        return {_readable(key): _text(key, each) for key, each in value.items()}
    return _text(name, value)


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return _readable(",".join(str(each) for each in value))
    return unix_s(str(value)) if name in _INSTANTS else _readable(str(value))


def _readable(text: str) -> str:
    """The text, with `?` for halves of characters: JSON may state those, messages may not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unix_s(text: str) -> str:
    """Writes a date as PBS prints it ("Thu Nov 26 17:16:30 2026", UTC) in Unix seconds."""
    found = _DATE.fullmatch(text.strip())
    if found is None or found.group(1) not in _MONTHS:
        return text
    month = _MONTHS.index(found.group(1)) + 1
    day, hour, minute, second, year = (int(part) for part in found.groups()[1:])
    return str(calendar.timegm((year, month, day, hour, minute, second, 0, 0, 0)))


def read_listing(printed: str, first: str) -> Objects:
    """Reads objects as `pbs_rstat -f` and `qmgr -c list` print them, one attribute a line.

    Args:
        first: the words before an object's name: "Resv ID: ", "Sched ".
    """
    objects: Objects = {}
    held: Attributes = {}
    for line in printed.splitlines():
        name, equal, value = line.partition(" = ")
        if line.startswith(first):
            held = objects.setdefault(line.removeprefix(first).strip(), {})
        elif equal:
            _set(held, name.strip(), value.strip())
    return objects


def _set(held: Attributes, name: str, value: str) -> None:
    attribute, dot, resource = name.partition(".")
    if not dot:
        held[attribute] = unix_s(value) if attribute in _INSTANTS else value
        return
    known = held.setdefault(attribute, {})
    if isinstance(known, dict):
        known[resource] = value


def read_resources(lines: Iterable[str]) -> Objects:
    """Reads definitions as `qmgr -c "print resource"` prints them: lines of qmgr."""
    found: Objects = {}
    for line in lines:
        words = line.split()
        if words[:2] == ["create", "resource"] and len(words) > 2:
            found.setdefault(words[2], {})
        elif words[:2] == ["set", "resource"] and len(words) > 5 and words[4] == "=":
            found.setdefault(words[2], {})[words[3]] = words[5]
    return found
