# SPDX-License-Identifier: Apache-2.0
"""The corridor of a simulation: steps relative to its start, some of which are announced.

A file, YAML or JSON, is a list of steps, or a mapping; with all keys:

    steps:
      - {at: 0, lower: 1700W, upper: 2500W}
      - {at: 5m, lower: 1kW, upper: 1.7kW}              # not known before
      - {at: 1h, upper: 3500, announced: true}          # known from the start
    grace_s: 10         # how long the system may be outside; see `bridge.extensions.power.measures`
    base: 200W          # in addition to nodes and jobs

A step lasts until the next one, the last one forever. Before the first step there are no bounds. A
bound that a step omits does not exist during it.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bridge import yaml_text
from bridge.errors import ConfigError
from bridge.extensions.power.rules import NO_UPPER_W, Corridor
from bridge.planning.site_rules.values_text import duration

MAX_W: Final = 10**12
_UNITS: Final = {"mw": 10**6, "kw": 10**3, "w": 1}
_KEYS: Final = ("at", "lower", "upper", "announced")
_SECTIONS: Final = ("steps", "grace_s", "base")


@dataclass(frozen=True)
class CorridorStep:
    """Bounds from an instant on, s after the start of the run."""

    at_s: int
    lower_w: int = 0
    upper_w: int = NO_UPPER_W
    announced: bool = False


@dataclass(frozen=True)
class CorridorSteps:
    """The steps of a run, ascending.

    Attributes:
        grace_s: see `bridge.extensions.power.measures`.
        base_w: in addition to nodes and jobs.
    """

    steps: tuple[CorridorStep, ...]
    grace_s: int = 10
    base_w: int = 0

    def instants(self, origin_s: int) -> list[int]:
        """The begin of a step in a run that begins at `origin_s`."""
        return [origin_s + step.at_s for step in self.steps]

    def announced(self, origin_s: int) -> frozenset[int]:
        """Likewise, of those that are announced."""
        return frozenset(origin_s + step.at_s for step in self.steps if step.announced)

    def whole(self, origin_s: int) -> Corridor:
        return _corridor(self.steps, origin_s)

    def known(self, origin_s: int, now_s: int) -> Corridor:
        """The steps known at an instant: those that have begun, and announced ones."""
        return _corridor(
            [step for step in self.steps if step.announced or origin_s + step.at_s <= now_s],
            origin_s,
        )

    def unannounced(self) -> "CorridorSteps":
        """The same, but nothing is known before."""
        return replace(self, steps=tuple(replace(each, announced=False) for each in self.steps))


def _corridor(steps: "list[CorridorStep] | tuple[CorridorStep, ...]", origin_s: int) -> Corridor:
    return Corridor(
        (0, *(origin_s + step.at_s for step in steps)),
        (0, *(step.lower_w for step in steps)),
        (NO_UPPER_W, *(step.upper_w for step in steps)),
    )


def read_corridor(path: Path) -> CorridorSteps:
    """Reads a file.

    Raises:
        ConfigError: it cannot be read, or a key is unknown, missing or impossible.
    """
    return yaml_text.read(path, parse_corridor)


def parse_corridor(value: Any) -> CorridorSteps:
    """Reads the value of such a file.

    Raises:
        ConfigError: a key is unknown, missing or impossible.
    """
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        _known("", value, _SECTIONS)
        rest, value = value, value.get("steps")
    if not isinstance(value, list) or not value:
        raise ConfigError(
            "steps", "must be a list of steps, for instance - {at: 0, lower: 1700W, upper: 2500W}"
        )
    steps = tuple(_step(f"steps.{at}", each) for at, each in enumerate(value))
    for at, (step, later) in enumerate(pairwise(steps), start=1):
        if later.at_s <= step.at_s:
            raise ConfigError(f"steps.{at}.at", f"must be after the previous step, {step.at_s} s")
    grace_s = rest.get("grace_s", 10)
    if isinstance(grace_s, bool) or not isinstance(grace_s, int) or not 0 <= grace_s <= 86_400:
        raise ConfigError("grace_s", f"must be 0 to 86400 seconds, not {grace_s!r:.40}")
    return CorridorSteps(steps, grace_s, watts("base", rest.get("base", 0)))


def _step(key: str, value: Any) -> CorridorStep:
    if not isinstance(value, dict):
        raise ConfigError(key, "must be a mapping: {at: 0, lower: 1700W, upper: 2500W}")
    _known(key, value, _KEYS)
    if "at" not in value:
        raise ConfigError(f"{key}.at", "is missing: seconds after the start of the run, or 5m, 1h")
    lower_w = watts(f"{key}.lower", value.get("lower", 0))
    upper_w = NO_UPPER_W if value.get("upper") is None else watts(f"{key}.upper", value["upper"])
    if lower_w > upper_w:
        raise ConfigError(key, f"its lower bound, {lower_w} W, is above its upper, {upper_w} W")
    announced = value.get("announced", False)
    if not isinstance(announced, bool):
        raise ConfigError(f"{key}.announced", f"must be true or false, not {announced!r:.40}")
    return CorridorStep(_at_s(f"{key}.at", value["at"]), lower_w, upper_w, announced)


def _known(key: str, value: dict[Any, Any], names: tuple[str, ...]) -> None:
    for name in value:
        if name not in names:
            where = f"{key}.{name!s:.40}" if key else f"{name!s:.40}"
            raise ConfigError(where, f"unknown key; there are {', '.join(names)}")


def _at_s(key: str, value: Any) -> int:
    found = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if isinstance(value, str):
        try:
            found = duration(value)
        except ValueError:
            found = -1
    if not 0 <= found <= 10**10:
        raise ConfigError(key, f"must be seconds or a duration such as 5m, not {value!r:.40}")
    return found


def watts(key: str, value: Any) -> int:
    """Whole watts of `1700`, `1700W`, `1.7kW` or `2MW`.

    Raises:
        ConfigError: it is none of these.
    """
    text = str(value).strip().lower().replace(" ", "")
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    try:
        if isinstance(value, bool):
            raise ValueError
        found = round(float(text.removesuffix(unit)) * _UNITS.get(unit, 1))
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found <= MAX_W:
        raise ConfigError(key, f"must be watts, as in 1700, 1700W or 1.7kW, not {value!r:.40}")
    return found
