# SPDX-License-Identifier: Apache-2.0
"""How applications slow each other down on shared nodes: the model, and its file.

A file, YAML or JSON:

    version: 1
    source: measured with benchmarks/interference.py     # optional, for people
    applications:
      blast:
        pressure: 0.3          # how much it slows others down beyond what CPU and disk explain
        sensitivity: 0.2       # how much it is slowed down by such pressure
        stages:                # in order; what each demands when it has its nodes to itself
          - {name: scan, share: 0.9, parallel: true, cpu: 0.98, io: 0.0, memory: 0.44}
          - {name: rank, share: 0.1, parallel: false, cpu: 1.0}

| key | meaning | unit | bounds |
|---|---|---|---|
| share | of the run time alone; all stages together 1 | - | above 0, to 1 |
| parallel | it uses all CPUs of the job; otherwise one | - | true, false |
| cpu | CPU time it uses of those CPUs | - | 0 to 1 |
| io | time in which it keeps the disk busy | - | 0 to 1 |
| memory | of the memory of its nodes | - | 0 to 1 |

Every application has a number, its position in the file. `rates.py` defines the use of the values.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from bridge import yaml_text
from bridge.errors import ConfigError

VERSION: Final = 1
MAX_APPLICATIONS, MAX_STAGES, MAX_FACTOR = 1_000, 100, 10.0
_SUM_TOLERANCE: Final = 1e-3


@dataclass(frozen=True)
class UseStage:
    """The demands of an application for a part of its run; the module's table has the units."""

    name: str
    share: float
    parallel: bool
    cpu: float
    io: float = 0.0
    memory: float = 0.0

    def busy(self, cpus: int) -> float:
        """The number of busy CPUs, for the CPUs of the job."""
        return self.cpu * cpus if self.parallel else self.cpu


@dataclass(frozen=True)
class Application:
    """Stages in order, their shares sum to 1; factors are 0 or more."""

    name: str
    stages: tuple[UseStage, ...]
    pressure: float = 0.0
    sensitivity: float = 0.0

    @property
    def memory(self) -> float:
        """The maximum memory of all stages, as a share of the memory of its nodes."""
        return max(stage.memory for stage in self.stages)


@dataclass(frozen=True)
class Interference:
    """The applications of a workload.

    Attributes:
        source: the source of the numbers, for display.
    """

    applications: tuple[Application, ...]
    source: str = ""

    @cached_property
    def number(self) -> Mapping[str, int]:
        """Name of an application to its number."""
        return {each.name: at for at, each in enumerate(self.applications)}

    def as_value(self) -> dict[str, Any]:
        """What `parse_interference` reads."""
        return {
            "version": VERSION,
            "source": self.source,
            "applications": {
                each.name: {
                    "pressure": each.pressure,
                    "sensitivity": each.sensitivity,
                    "stages": [dict(vars(stage)) for stage in each.stages],
                }
                for each in self.applications
            },
        }


def read_interference(path: Path) -> Interference:
    """Reads a file.

    Raises:
        ConfigError: it cannot be read, or a key is unknown, missing or impossible.
    """
    return yaml_text.read(path, parse_interference)


def parse_interference(value: Any) -> Interference:
    """Reads the value of such a file.

    Raises:
        ConfigError: a key is unknown, missing or impossible.
    """
    top = _mapping("", value, ("version", "source", "applications"))
    if isinstance(top.get("version"), bool) or top.get("version") != VERSION:
        found = f"{top['version']!r:.20}" if "version" in top else "missing"
        raise ConfigError("version", f"is {found}; this release reads version {VERSION}")
    source = top.get("source", "")
    if not isinstance(source, str):
        raise ConfigError("source", "must be a text")
    listed = top.get("applications")
    if not isinstance(listed, dict) or not 0 < len(listed) <= MAX_APPLICATIONS:
        raise ConfigError("applications", f"must map 1 to {MAX_APPLICATIONS} names to applications")
    return Interference(tuple(_application(name, each) for name, each in listed.items()), source)


def _application(name: Any, value: Any) -> Application:
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
        raise ConfigError(f"applications.{name!s:.40}", "a name has 1 to 100 printable characters")
    key = f"applications.{name}"
    found = _mapping(key, value, ("pressure", "sensitivity", "stages"))
    listed = found.get("stages")
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_STAGES:
        raise ConfigError(f"{key}.stages", f"must be a list of 1 to {MAX_STAGES} stages")
    stages = tuple(_stage(f"{key}.stages.{at}", each) for at, each in enumerate(listed))
    total = math.fsum(stage.share for stage in stages)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise ConfigError(f"{key}.stages", f"their shares sum to {total:.4g} instead of 1")
    return Application(
        name,
        stages,
        _number(f"{key}.pressure", found.get("pressure", 0), 0, MAX_FACTOR),
        _number(f"{key}.sensitivity", found.get("sensitivity", 0), 0, MAX_FACTOR),
    )


def _stage(key: str, value: Any) -> UseStage:
    found = _mapping(key, value, ("name", "share", "parallel", "cpu", "io", "memory"))
    for name in ("name", "share", "parallel", "cpu"):
        if name not in found:
            raise ConfigError(f"{key}.{name}", "is missing")
    if not isinstance(found["name"], str) or not found["name"]:
        raise ConfigError(f"{key}.name", "must be a text")
    if not isinstance(found["parallel"], bool):
        raise ConfigError(
            f"{key}.parallel", f"must be true or false, not {found['parallel']!r:.40}"
        )
    share = _number(f"{key}.share", found["share"], 0, 1)
    if share <= 0:
        raise ConfigError(f"{key}.share", "must be above 0; leave out a stage that takes no time")
    parts = {
        name: _number(f"{key}.{name}", found.get(name, 0), 0, 1) for name in ("cpu", "io", "memory")
    }
    return UseStage(found["name"], share, found["parallel"], **parts)


def _mapping(key: str, value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(key, f"must be a mapping with {', '.join(names)}")
    for name in value:
        if name not in names:
            where = f"{key}.{name!s:.40}" if key else f"{name!s:.40}"
            raise ConfigError(where, f"unknown key; there are {', '.join(names)}")
    return value


def _number(key: str, value: Any, minimum: float, maximum: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not minimum <= value <= maximum:
        raise ConfigError(
            key, f"must be a number from {minimum:g} to {maximum:g}, not {value!r:.40}"
        )
    return float(value)
