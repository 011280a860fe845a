# SPDX-License-Identifier: Apache-2.0
"""Finds the packages of policies: that of schedbridge, and those at the entry points.

A package that cannot be used is left out and named in `problems`; the others are not affected.
Where two packages use a name, that of schedbridge wins, then the package that comes first by name.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from bridge.entry_points import loaded
from bridge.model.policy import STAGES, Algorithm, PolicyPackage, PolicySpec
from bridge.policies.catalogue import PACKAGE

GROUP: Final = "schedbridge.policies"
_MAX_NAME: Final = 60
"""The length of a name, characters."""
_MAX_SUMMARY: Final = 120
"""The length of a summary, characters."""


@dataclass(frozen=True)
class Known:
    """What can be chosen in a policy.

    Attributes:
        algorithms: from a stage to names and algorithms.
        package_of: from the name of a preset to that of the package that it comes from; without
            those of schedbridge itself.
        summaries: a line for each preset that a site may choose in production.
        problems: a sentence for each package, or name of one, that was left out.
    """

    algorithms: dict[str, dict[str, Algorithm]] = field(
        default_factory=lambda: {stage: {} for stage in STAGES}
    )
    presets: dict[str, PolicySpec] = field(default_factory=dict)
    package_of: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@cache
def known() -> Known:
    """Returns what is installed, as found when it was first asked for."""
    return gathered(entry_points(group=GROUP))


def gathered(points: Iterable[EntryPoint]) -> Known:
    """Returns the algorithms and presets of schedbridge and of these entry points."""
    found = Known()
    _add(found, "", PACKAGE)
    for name, package in loaded(points, PolicyPackage, _check, found.problems):
        _add(found, name, package)
    return found


def _add(found: Known, package_name: str, package: PolicyPackage) -> None:
    def is_free(kind: str, name: str, taken: Container[str]) -> bool:
        if name in taken:
            found.problems.append(
                f"{kind} '{name}' of the package '{package_name}' is left out: the name is taken"
            )
        return name not in taken

    for stage, algorithms in package.algorithms.items():
        for name, algorithm in algorithms.items():
            if is_free(stage, name, found.algorithms[stage]):
                found.algorithms[stage][name] = algorithm
    for spec in package.presets:
        if is_free("preset", spec.name, found.presets):
            found.presets[spec.name] = spec
            if spec.name in package.summaries:
                found.summaries[spec.name] = package.summaries[spec.name]
            if package_name:
                found.package_of[spec.name] = package_name


def _check(_: str, package: PolicyPackage) -> None:
    """Raises ValueError if a package, which a stranger wrote, has other types than it should."""
    if not isinstance(package.algorithms, Mapping):
        raise ValueError("'algorithms' must be a mapping")
    for stage, algorithms in package.algorithms.items():
        if stage not in STAGES:
            raise ValueError(f"no stage {stage!r:.60}; there are {', '.join(STAGES)}")
        if not isinstance(algorithms, Mapping):
            raise ValueError(f"'algorithms' of the stage '{stage}' must be a mapping")
        for name, algorithm in algorithms.items():
            _check_name(name)
            if not isinstance(algorithm, Algorithm) or algorithm.path.count(":") != 1:
                raise ValueError(
                    f"'{name}' must be an Algorithm with a path 'package.module:Class'"
                )
    if not isinstance(package.presets, Sequence):
        raise ValueError("'presets' must be a sequence")
    for spec in package.presets:
        if not isinstance(spec, PolicySpec):
            raise ValueError(f"a preset must be a PolicySpec, not {type(spec).__name__}")
        _check_name(spec.name)
    if not isinstance(package.summaries, Mapping):
        raise ValueError("'summaries' must be a mapping")
    for name, line in package.summaries.items():
        if not isinstance(line, str) or not line.isprintable() or len(line) > _MAX_SUMMARY:
            raise ValueError(
                f"the summary of {name!r:.80} must be at most {_MAX_SUMMARY} printable characters"
            )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise ValueError(f"names are 1 to {_MAX_NAME} printable characters, not {name!r:.80}")
