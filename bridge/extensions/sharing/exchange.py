# SPDX-License-Identifier: Apache-2.0
"""What was learnt about two jobs on a node, as plain values that people can read and edit.

    {"format": "schedbridge coscheduling", "version": 1,
     "applications": [{"user": "ann", "name": "blast", "nodes": 2, "runs": 4, "cpu_s": 310.5,
                       "run_s": 80.0, "peak_mib": 900}],
     "pairs": [{"host": {"user": "ann", "name": "blast", "nodes": 2},
                "guest": {"user": "ann", "name": "montage", "nodes": 2},
                "guest_cpus": 1.2, "ceilings": {"50": {"count": 3, "harm": 0.02}}}],
     "with_any": [{"host": {...}, "guest_cpus": 1.2, "ceilings": {...}}],
     "asax": {"experts": {"idle CPUs": 0.4}, "decisions": 12, "mixture_risk": 1.0, "allowed": 0.9}}

An import replaces everything. Omitted entries are then unknown. A misspelt key could make a pair
seem harmless, so unknown and missing keys are refused, as are names that no application has.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from bridge.errors import ConfigError
from bridge.extensions.sharing.experts import default_experts
from bridge.extensions.sharing.histories import (
    MAX_NAME,
    History,
    application,
    application_of,
    histories,
    history_key,
    is_plain,
)
from bridge.extensions.sharing.kept_keys import EVERY, MAX
from bridge.extensions.sharing.kept_learner import COUNTS, RISK, TINY
from bridge.extensions.sharing.pair_knowledge import (
    CEILINGS,
    LARGEST_HARM,
    MEMORY,
    Entry,
    Seen,
    host_key,
    hosts_in,
    pair_key,
    pairs_in,
)
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt

FORMAT, VERSION = "schedbridge coscheduling", 1
_MAX_ITEMS: Final = MAX + EVERY
"""Of applications and pairs together; no service has more."""
_MAX_NUMBER: Final = 1e12
_MAX_USER: Final = 1000


def exported(pairs: Learnt, asax: Learnt) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "applications": [
            {**_named(app), "runs": one.runs, "cpu_s": round(one.cpu_s, 3),
             "run_s": round(one.run_s, 3), "peak_mib": one.peak_mib,
             "deviation_s": round(one.deviation_s, 3)}
            for app, one in histories(pairs.known).items()
        ],
        "pairs": [
            {"host": _named(host), "guest": _named(guest), **_entry(entry)}
            for (host, guest), entry in pairs_in(pairs.known).items()
        ],
        "with_any": [
            {"host": _named(host), **_entry(entry)}
            for host, entry in hosts_in(pairs.known).items()
        ],
        "asax": _learner(asax),
    }  # fmt: skip


def _named(app: str) -> dict[str, Any]:
    user, name, nodes = application_of(app)
    return {"user": user, "name": name, "nodes": nodes}


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "guest_cpus": round(entry.guest_cpus, 3),
        "ceilings": {
            str(ceiling): {"count": round(one.count, 3), "harm": round(one.harm, 6)}
            for ceiling, one in zip(CEILINGS, entry.seen, strict=True)
            if one.count > 0
        },
    }


def _learner(asax: Learnt) -> dict[str, Any]:
    names = [expert.name for expert in default_experts()]
    risk, counts = asax.known.get(RISK), asax.known.get(COUNTS)
    if risk is None or counts is None or len(risk) != len(names) or len(counts) != 3:
        return {}
    return {
        "experts": {name: each * TINY for name, each in zip(names, risk, strict=True)},
        "decisions": counts[0],
        "mixture_risk": counts[1] * TINY,
        "allowed": counts[2] * TINY,
    }


# ------------------------------------------------------------ import


def imported(value: object) -> tuple[Learnt, Learnt]:
    """The state of `pairs` and `asax` after an import.

    Raises:
        ConfigError: it does not fit; with the place.
    """
    found = _mapping(value, "")
    version = found.get("version")
    if found.get("format") != FORMAT or isinstance(version, bool) or version != VERSION:
        raise ConfigError("format", f'must be "{FORMAT}", version {VERSION}')
    _check_keys(found, "", ("format", "version"), ("applications", "pairs", "with_any", "asax"))
    kinds = {kind: _items(found, kind) for kind in _READERS}
    if sum(map(len, kinds.values())) > _MAX_ITEMS:
        raise ConfigError("file", f"has more than {_MAX_ITEMS} applications and pairs")
    learnt: dict[str, list[int]] = {}
    for kind, items in kinds.items():
        for at, item in enumerate(items):
            where = f"{kind}[{at}]"
            key, numbers = _READERS[kind](_mapping(item, where), where)
            if key in learnt:
                raise ConfigError(where, "is listed twice")
            learnt[key] = numbers
    return Learnt(Layers(learnt)), _read_learner(found.get("asax", {}))


def _read_history(one: Mapping[str, Any], where: str) -> tuple[str, list[int]]:
    _check_keys(one, where, (*_NAMES, "runs", "cpu_s", "run_s"), ("peak_mib", "deviation_s"))
    history = History(
        _whole(one, "runs", where, 1, 1000),
        _number(one, "cpu_s", where), _number(one, "run_s", where),
        _whole({"peak_mib": 0, **one}, "peak_mib", where),
        _number({"deviation_s": 0, **one}, "deviation_s", where),
    )  # fmt: skip
    return history_key(_application(one, where)), history.numbers()


def _read_pair(one: Mapping[str, Any], where: str) -> tuple[str, list[int]]:
    _check_keys(one, where, ("host", "guest"), _OF_ENTRY)
    host, guest = (_named_application(one, part, where) for part in ("host", "guest"))
    return pair_key(host, guest), _read_entry(one, where).numbers()


def _read_with_any(one: Mapping[str, Any], where: str) -> tuple[str, list[int]]:
    _check_keys(one, where, ("host",), _OF_ENTRY)
    return host_key(_named_application(one, "host", where)), _read_entry(one, where).numbers()


_NAMES: Final = ("user", "name", "nodes")
_OF_ENTRY: Final = ("guest_cpus", "ceilings")
_READERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], tuple[str, list[int]]]]] = (
    MappingProxyType(
        {"applications": _read_history, "pairs": _read_pair, "with_any": _read_with_any}
    )
)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(where or "file", "must be a mapping")
    return value


def _check_keys(
    found: Mapping[str, Any], where: str, needed: tuple[str, ...], others: tuple[str, ...] = ()
) -> None:
    """Refuses unknown and missing keys."""
    for key in found:
        if key not in needed and key not in others:
            known = ", ".join(sorted((*needed, *others)))
            raise ConfigError(_place(where, key), f"unknown key; there are {known}")
    for key in needed:
        if key not in found:
            raise ConfigError(_place(where, key), "is missing")


def _place(where: str, key: object) -> str:
    text = str(key)[:60]
    shown = text if text.isprintable() else ascii(text)
    return f"{where}.{shown}" if where else shown


def _items(found: Mapping[str, Any], key: str) -> list[Any]:
    items = found.get(key, [])
    if not isinstance(items, list):
        raise ConfigError(key, "must be a list")
    return items


def _number(
    one: Mapping[str, Any], key: str, where: str, minimum: float = 0, maximum: float = _MAX_NUMBER
) -> float:
    value = one[key]
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not minimum <= value <= maximum:
        raise ConfigError(f"{where}.{key}", f"must be a number from {minimum:g} to {maximum:g}")
    return float(value)


def _whole(
    one: Mapping[str, Any], key: str, where: str, minimum: int = 0, maximum: float = _MAX_NUMBER
) -> int:
    value = one[key]
    wrong = isinstance(value, bool) or not isinstance(value, int)
    if wrong or not minimum <= value <= maximum:
        raise ConfigError(f"{where}.{key}", f"must be a whole number from {minimum} to {maximum:g}")
    return int(value)


def _named_application(one: Mapping[str, Any], part: str, where: str) -> str:
    place = f"{where}.{part}"
    found = _mapping(one[part], place)
    _check_keys(found, place, _NAMES)
    return _application(found, place)


def _application(one: Mapping[str, Any], where: str) -> str:
    """The application that is named; the name must be one as `application` makes it."""
    user, name = one["user"], one["name"]
    nodes = _whole(one, "nodes", where, 1, 1 << 30)
    if not _is_text(user) or len(user) > _MAX_USER:
        raise ConfigError(f"{where}.user", f"must be a text of at most {_MAX_USER} characters")
    app = application(user, name, nodes) if _is_text(name) else ""
    if not app or application_of(app) != (user, name, nodes):
        raise ConfigError(
            f"{where}.name",
            f"must be a text of at most {MAX_NAME} characters, without digits at its end",
        )
    return app


def _is_text(value: object) -> bool:
    """Whether it is a text without control characters that can be sent."""
    if not isinstance(value, str):
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value) and is_plain(value)


def _read_entry(one: Mapping[str, Any], where: str) -> Entry:
    place, seen = f"{where}.ceilings", {ceiling: Seen() for ceiling in CEILINGS}
    given = set[str]()
    for key, value in _mapping(one.get("ceilings", {}), place).items():
        if str(key) not in map(str, CEILINGS):
            raise ConfigError(place, f"'{key!s:.20}' is none of {CEILINGS}")
        if str(key) in given:
            raise ConfigError(place, f"'{key}' is listed twice")
        given.add(str(key))
        each = _mapping(value, f"{place}.{key}")
        _check_keys(each, f"{place}.{key}", ("count", "harm"))
        seen[int(key)] = Seen(
            _number(each, "count", f"{place}.{key}", 0, MEMORY),
            _number(each, "harm", f"{place}.{key}", -1, LARGEST_HARM),
        )
    return Entry(tuple(seen.values()), _number({"guest_cpus": -1, **one}, "guest_cpus", where, -1))


def _read_learner(value: object) -> Learnt:
    found = _mapping(value, "asax")
    if not found:
        return Learnt()
    _check_keys(found, "asax", ("experts", "decisions", "mixture_risk", "allowed"))
    names = [expert.name for expert in default_experts()]
    experts = _mapping(found["experts"], "asax.experts")
    if set(experts) != set(names):
        raise ConfigError("asax.experts", f"must be {', '.join(names)}")
    risk = [round(_number(experts, name, "asax.experts", 0, 1e6) / TINY) for name in names]
    counts = [_whole(found, "decisions", "asax")]
    counts += [round(_number(found, key, "asax", 0, 1e6) / TINY)
               for key in ("mixture_risk", "allowed")]  # fmt: skip
    return Learnt(Layers({RISK: risk, COUNTS: counts}))
