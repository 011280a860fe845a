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

An import replaces everything. Omitted entries are then unknown.
"""

from collections.abc import Mapping
from typing import Any, Final

from bridge.errors import ConfigError
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.planning.sharing.experts import default_experts
from bridge.planning.sharing.histories import (
    History,
    application_of,
    histories,
    history_key,
)
from bridge.planning.sharing.kept_keys import APART, BESIDE
from bridge.planning.sharing.kept_learner import COUNTS, RISK, TINY
from bridge.planning.sharing.pair_knowledge import (
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

FORMAT, VERSION = "schedbridge coscheduling", 1
_MOST_ITEMS: Final = 200_000
_MOST: Final = 1e12


def exported(pairs: Learnt, asax: Learnt) -> dict[str, Any]:
    """Everything that was learnt."""
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
    if found.get("format") != FORMAT or found.get("version") != VERSION:
        raise ConfigError("format", f'must be "{FORMAT}", version {VERSION}')
    known = {"format", "version", "applications", "pairs", "with_any", "asax"}
    for key in found:
        if key not in known:
            raise ConfigError(str(key)[:60], f"unknown key; there are {', '.join(sorted(known))}")
    pairs: dict[str, list[int]] = {}
    for at, item in enumerate(_items(found, "applications")):
        where = f"applications[{at}]"
        one = _mapping(item, where)
        history = History(
            max(int(_number(one, "runs", where, 1, 1000)), 1),
            _number(one, "cpu_s", where), _number(one, "run_s", where),
            int(_number(one, "peak_mib", where)), _number(one, "deviation_s", where),
        )  # fmt: skip
        pairs[history_key(_application(one, where))] = history.numbers()
    for at, item in enumerate(_items(found, "pairs")):
        where = f"pairs[{at}]"
        one = _mapping(item, where)
        host = _application(_mapping(one.get("host"), f"{where}.host"), f"{where}.host")
        guest = _application(_mapping(one.get("guest"), f"{where}.guest"), f"{where}.guest")
        pairs[pair_key(host, guest)] = _read_entry(one, where).numbers()
    for at, item in enumerate(_items(found, "with_any")):
        where = f"with_any[{at}]"
        one = _mapping(item, where)
        host = _application(_mapping(one.get("host"), f"{where}.host"), f"{where}.host")
        pairs[host_key(host)] = _read_entry(one, where).numbers()
    return Learnt(Layers(pairs)), _read_learner(found.get("asax") or {})


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(where or "file", "must be a mapping")
    return value


def _items(found: Mapping[str, Any], key: str) -> list[Any]:
    items = found.get(key, [])
    if not isinstance(items, list) or len(items) > _MOST_ITEMS:
        raise ConfigError(key, f"must be a list of at most {_MOST_ITEMS}")
    return items


def _number(
    one: Mapping[str, Any], key: str, where: str, least: float = 0, most: float = _MOST
) -> float:
    value = one.get(key, 0)
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not least <= value <= most:
        raise ConfigError(f"{where}.{key}", f"must be a number from {least:g} to {most:g}")
    return float(value)


def _application(one: Mapping[str, Any], where: str) -> str:
    user, name = one.get("user"), one.get("name")
    for key, text in (("user", user), ("name", name)):
        if not isinstance(text, str) or len(text) > 1000 or APART in text or BESIDE in text:
            raise ConfigError(f"{where}.{key}", "must be a text of at most 1000 characters")
    nodes = int(_number(one, "nodes", where, 1, 1 << 30))
    return APART.join((str(user), str(name), str(nodes)))


def _read_entry(one: Mapping[str, Any], where: str) -> Entry:
    seen = []
    ceilings = _mapping(one.get("ceilings", {}), f"{where}.ceilings")
    for key in ceilings:
        if str(key) not in {str(ceiling) for ceiling in CEILINGS}:
            raise ConfigError(f"{where}.ceilings", f"'{key!s:.20}' is none of {CEILINGS}")
    given = {str(key): each for key, each in ceilings.items()}
    for ceiling in CEILINGS:
        place = f"{where}.ceilings.{ceiling}"
        each = _mapping(given.get(str(ceiling), {}), place)
        count = _number(each, "count", place, 0, MEMORY)
        seen.append(Seen(count, _number(each, "harm", place, -1, LARGEST_HARM)))
    return Entry(tuple(seen), _number({"guest_cpus": -1.0, **one}, "guest_cpus", where, -1))


def _read_learner(value: object) -> Learnt:
    found = _mapping(value, "asax")
    if not found:
        return Learnt()
    names = [expert.name for expert in default_experts()]
    experts = _mapping(found.get("experts"), "asax.experts")
    if set(experts) != set(names):
        raise ConfigError("asax.experts", f"must be {', '.join(names)}")
    risk = [round(_number(experts, name, "asax.experts", 0, 1e6) / TINY) for name in names]
    counts = [int(_number(found, "decisions", "asax"))]
    counts += [round(_number(found, key, "asax", 0, 1e6) / TINY)
               for key in ("mixture_risk", "allowed")]  # fmt: skip
    return Learnt(Layers({RISK: risk, COUNTS: counts}))
