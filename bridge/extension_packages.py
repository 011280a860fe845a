# SPDX-License-Identifier: Apache-2.0
"""Finds extensions: those of schedbridge and of any other package, at their entry points.

An extension that cannot be used is left out and named in `problems`; the others are not affected.
Where two packages use a name, the one whose entry point comes first by value wins.
"""

import dataclasses
import graphlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.entry_points import loaded, mending
from bridge.errors import ExtensionError, Overtime
from bridge.extensions.port import CycleView, Extension, Face, Stages, Worlds
from bridge.extensions.service_port import SiteRules
from bridge.model.job import RUNNING_COLUMNS, RunningTable, has_value
from bridge.model.parts import NO_PARTS
from bridge.model.plan import Plan
from bridge.model.policy import STAGES
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import WeightedBound
from bridge.ports import NoStage, Planned, Policy, Preference

GROUP: Final = "schedbridge.extensions"
_NO_FACES: Final = frozenset(
    {"name", "after", "nodes", "plan", "site", "stage", "marks", "keeps", "simulated"}
)
"""Fields of `Extension`; each other one is a `Face` or None."""


@dataclass(frozen=True)
class Installed:
    """The extensions that can be used.

    Attributes:
        by_name: in the order in which they act.
        problems: a sentence for each that was left out.
    """

    by_name: dict[str, Extension] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@cache
def installed() -> Installed:
    """Returns what is installed, as found when it was first asked for."""
    return gathered(entry_points(group=GROUP))


def gathered(points: Iterable[EntryPoint]) -> Installed:
    found = Installed()
    known: dict[str, Extension] = {}
    for name, extension in loaded(points, Extension, _check, found.problems):
        if name in known:
            found.problems.append(f"a second extension '{name}' is left out: the name is taken")
        else:
            known[name] = extension
    for name in _in_order(known, found.problems):
        found.by_name[name] = known[name]
    return found


def _in_order(known: dict[str, Extension], problems: list[str]) -> list[str]:
    """Names in the order in which extensions act; of a circle, all members are left out."""
    sorter = graphlib.TopologicalSorter(
        {name: sorted(set(known[name].after) & known.keys()) for name in sorted(known)}
    )
    try:
        return list(sorter.static_order())
    except graphlib.CycleError as error:
        circle = set(error.args[1])
        names = ", ".join(sorted(circle))
        problems.append(f"the extensions {names} are left out: each is to act after the other")
        return _in_order({n: one for n, one in known.items() if n not in circle}, problems)


def _check(name: str, extension: Extension) -> None:
    """Raises ValueError unless an extension has the types that it should have."""
    if extension.name != name:
        raise ValueError(f"its name is {extension.name!r:.60}: it must be that of the entry point")
    if not name.isidentifier() or name.startswith("_"):
        raise ValueError(
            "its name must be a word of letters, digits and underscores, first a letter"
        )
    for key in ("after", "keeps", "marks"):
        names = getattr(extension, key)
        if not (isinstance(names, tuple) and all(isinstance(each, str) for each in names)):
            raise ValueError(f"'{key}' must be a tuple of names")
    _check_activity(extension)
    for kind in (extension.nodes, extension.plan, extension.site):
        if kind is not None and not dataclasses.is_dataclass(kind):
            raise ValueError(f"a part must be a dataclass, not {kind!r:.60}")
    if extension.plan is not None and extension.check is None:
        raise ValueError("it has a part of plans, but no check of it")
    if extension.rules is not None and extension.site is None:
        raise ValueError("it has a section of planning, but no part of the site's rules")
    for key in sorted({each.name for each in dataclasses.fields(extension)} - _NO_FACES):
        face = getattr(extension, key)
        if face is not None and not (isinstance(face, Face) and _is_there(face.path)):
            raise ValueError(f"there is no module for {face!r:.120}")


def _check_activity(extension: Extension) -> None:
    """Raises ValueError unless the stage and the columns exist that make an extension active."""
    if extension.stage and extension.stage not in STAGES:
        raise ValueError(f"policies have no stage {extension.stage!r:.60}")
    if unknown := set(extension.marks) - {column.name for column in RUNNING_COLUMNS}:
        raise ValueError(f"running jobs have no column {min(unknown):.60}")
    if extension.counting is not None and not extension.marks:
        raise ValueError("it counts the use of running jobs, but names no column of these")


def _is_there(path: str) -> bool:
    module, colon, name = path.partition(":")
    try:
        return bool(colon and name) and find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def require(name: str) -> None:
    """Makes sure that an extension that a configuration has a section of can be used.

    Raises:
        ValueError: it cannot; the message names what is left out, and how to mend it.
    """
    if name not in installed().by_name:
        raise ValueError(f"needs the extension '{name}', which is not usable{hint()}")


def hint() -> str:
    """Returns the end of a message about an unknown name: it may be that of a broken extension."""
    return mending(installed().problems)


def site_rules(taken: Collection[str]) -> dict[str, SiteRules]:
    """Returns how the rules of extensions are written, by the names of the extensions.

    Args:
        taken: names of other sections.
    """
    found: dict[str, SiteRules] = {}
    for name, extension in installed().by_name.items():
        if extension.rules is None:
            continue
        try:
            rules = extension.rules.made()
            _check_rules(rules)
            if rules.key in {*taken, *(each.key for each in found.values())}:
                raise ValueError(f"the name '{rules.key:.60}' is taken")
            found[name] = rules
        except Exception as error:  # a stranger's code
            problem = f"{type(error).__name__}: {error}"
            installed().problems.append(
                f"the section of the extension '{name}' in planning is left out: {problem}"
            )
    return found


def _check_rules(rules: SiteRules) -> None:
    """Raises ValueError unless a section can be a field of `planning`."""
    if not (rules.key.isidentifier() and not rules.key.startswith("_")):
        raise ValueError(f"its key {rules.key!r:.60} must be a word")
    needed = ("model_fields", "check", "repeated", "openings", "part")
    if missing := [name for name in needed if not hasattr(rules.section, name)]:
        raise ValueError(f"its class {rules.section!r:.60} has no {', '.join(missing)}")


# ------------------------------------------------------------ in a cycle


def active_stages(
    snapshot: Snapshot, policy: Policy | None = None, left_out: Collection[str] = ()
) -> tuple["StagesInCycle", ...]:
    """Returns the stages of the active extensions, in their order.

    Args:
        policy: the policy in force; None: outside of cycles.
        left_out: extensions that do not act in this cycle.
    """
    found, parts = list[StagesInCycle](), snapshot.nodes.parts
    for name, extension in installed().by_name.items():
        stage = extension.stage
        if extension.stages is None or name in left_out:
            continue
        is_chosen = policy and stage and not isinstance(getattr(policy, stage), NoStage)
        has_part = parts is not NO_PARTS and name in parts
        if is_chosen or has_part or has_value(snapshot.running, extension.marks):
            found.append(StagesInCycle(name, extension.stages, acts_for_policy=bool(stage)))
    return tuple(found)


@dataclass(frozen=True)
class StagesInCycle:
    """The stages of an active extension; whatever they raise names it.

    Attributes:
        acts_for_policy: in a stage of policies. What it raises is then the policy's, and it is
            never left out.
    """

    name: str
    face: Face[Stages]
    acts_for_policy: bool = False

    def bounds(self, snapshot: Snapshot, site: Site) -> Sequence[WeightedBound]:
        """See `Stages.bounds`."""
        with self._named():
            return self.face.made().bounds(snapshot, site)

    def before_plan(self, snapshot: Snapshot, preference: Preference) -> Preference:
        """See `Stages.before_plan`."""
        with self._named():
            return self.face.made().before_plan(snapshot, preference)

    def after_plan(self, planned: Planned, cycle: CycleView) -> Planned:
        """See `Stages.after_plan`."""
        with self._named():
            return self.face.made().after_plan(planned, cycle)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except Overtime:
            raise
        except Exception as error:  # a stranger's code
            if self.acts_for_policy:
                raise
            raise ExtensionError(self.name, f"{type(error).__name__}: {error}") from error


def counted(running: RunningTable) -> RunningTable:
    """Returns the table as extensions count the use of jobs, by the present ends of these."""
    for extension in installed().by_name.values():
        if extension.counting is not None and has_value(running, extension.marks):
            running = extension.counting.made().counted(running)
    return running


def as_reported(running: RunningTable) -> NDArray[np.int64]:
    """Returns what each job holds by itself, as `RunningTable.use`: the inverse of `counted`."""
    for extension in installed().by_name.values():
        if extension.counting is not None and has_value(running, extension.marks):
            return extension.counting.made().reported(running)
    return running.use


def has_mark(name: str, snapshot: Snapshot) -> bool:
    """Tells whether a running job has a value in one of the columns of an extension."""
    return has_value(snapshot.running, installed().by_name[name].marks)


def overlaid(snapshot: Snapshot) -> Snapshot:
    """Returns a report as it is to be planned and explained, with what active extensions add."""
    for stages in active_stages(snapshot):
        snapshot = stages.face.made().overlay(snapshot)
    return snapshot


def weighted_bounds(snapshot: Snapshot, site: Site) -> tuple[WeightedBound, ...]:
    """Returns the bounds of the extensions that the site's rules have a part of.

    Raises:
        ExtensionError: one failed. No plan is made without it: it would be illegal.
    """
    if not site.binds_starts:
        return ()
    found: list[WeightedBound] = []
    for name, extension in installed().by_name.items():
        part = site.parts.get(name)
        if part is not None and part.binds_starts and extension.stages is not None:
            found += StagesInCycle(name, extension.stages).bounds(snapshot, site)
    return tuple(found)


def broken_rows(world: Any, site: Site) -> Iterator[tuple[int, str]]:
    """Checks the rows of a plan by the parts of the site's rules; a part needs one that checks it.

    Args:
        world: a `bridge.check.amounts.CheckedAmounts`.
    """
    for name, part in site.parts.items():
        if not part.binds_starts:
            continue
        extension = installed().by_name.get(name)
        if extension is None or extension.check is None or extension.site is None:
            text = f"is under rules of the extension '{name:.60}', which nothing checks"
            yield from ((row, text) for row in world.rows.tolist())
        elif not isinstance(part, extension.site):
            text = f"is under rules of the extension '{name:.60}' of another type than it has"
            yield from ((row, text) for row in world.rows.tolist())
        else:
            yield from extension.check.made().rows(world, site)


def broken_parts(snapshot: Snapshot, site: Site, plan: Plan) -> Iterator[tuple[str, str]]:
    """Checks the parts of a plan; yields the id of a job, or an empty text, and a sentence."""
    if plan.parts is NO_PARTS:
        return
    for name in plan.parts:
        extension = installed().by_name.get(name)
        if extension is None or extension.check is None or extension.plan is None:
            yield "", f"has a part of the extension '{name:.60}', which nothing checks"
        elif not isinstance(plan.parts[name], extension.plan):
            yield "", f"has a part of the extension '{name:.60}' of another type than it should"
        else:
            yield from extension.check.made().broken(snapshot, site, plan)


def other_worlds(snapshot: Snapshot, site: Site, plan: Plan) -> Worlds:
    """Returns the worlds that an extension states for a plan whose parts are not broken."""
    for name in plan.parts:
        check = installed().by_name[name].check
        if check is not None and (found := check.made().worlds(snapshot, site, plan)):
            return found
    return ()
