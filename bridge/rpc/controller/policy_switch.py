# SPDX-License-Identifier: Apache-2.0
"""Replaces the policy or the site's rules between two cycles."""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

import yaml

from bridge import yaml_text
from bridge.errors import ConfigError
from bridge.model.policy import PolicySpec
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.apply_predictions import as_planned
from bridge.planning.site_rules.lowered_rules import lower, stranded, unknown_to
from bridge.planning.site_rules.rules_text import PlanningSection
from bridge.ports import Conditions, conditions_of, ranks_by_size
from bridge.registry import build, describe, for_live, parse_policy, within
from bridge.rpc.controller.cycles import Cycles
from bridge.safe_cycle.decider import Decider

_log = logging.getLogger(__name__)

_LONGER = 1.1
"""A controller timeout that is longer than before by this factor gives a policy more time."""


class Resolved(Protocol):
    """What replaces a part of the site's rules that is resolved for each cycle."""

    def site(self, site: Site) -> Site: ...

    def section(self, planning: Mapping[str, object]) -> Mapping[str, object]:
        """The section `planning` from which the same rules are read, e.g. by a replay."""


class Unresolved:
    """Leaves the rules as they are."""

    def site(self, site: Site) -> Site:
        """The same."""
        return site

    def section(self, planning: Mapping[str, object]) -> Mapping[str, object]:
        """The same."""
        return planning


class PolicySwitch:
    """The policy and the site's rules from the next cycle on.

    Attributes:
        planning: the rules of the site in the form of the section `planning`.
        changes: how often the policy, the rules or what is resolved for them were replaced.
    """

    def __init__(
        self,
        spec: PolicySpec,
        decider: Decider,
        changed: Callable[[str], None] = lambda _name: None,
        *,
        planning: Mapping[str, object] | None = None,
    ) -> None:
        """Starts with a policy and a site that the decider already has.

        Args:
            changed: called with the name of every new policy.
            planning: the section from which the decider's site was read.
        """
        self.spec = spec
        self.planning = planning or {}
        self.changes = 0
        self._changed = changed
        self._decider = decider
        self._resolved: Resolved = Unresolved()
        self._borne: tuple[PolicySpec, float] = spec, 0.0

    def name(self) -> str:
        """The policy's name, for display."""
        return self.spec.name

    def places_by_size(self) -> bool:
        """Whether the policy ranks nodes of equal weight by size alone."""
        return ranks_by_size(self._decider.policy.place)

    @property
    def site(self) -> Site:
        """The rules of the site in force."""
        return self._decider.site

    def resolve(self, resolved: Resolved) -> None:
        """Puts what was resolved in force; before a cycle, under its lock."""
        self._resolved = resolved
        self._decider.site = resolved.site(self._decider.site)
        self.changes += 1

    def recorded(self) -> Mapping[str, object]:
        """The rules of the site, with what is resolved for each cycle."""
        return self._resolved.section(self.planning)

    def conditions(self) -> Conditions:
        """The rules in force."""
        return conditions_of(self._decider.policy.plan, self._decider.site)

    def unknown(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Resources in the site's rules that a cluster does not have."""
        return unknown_to(self._decider.site, snapshot)

    def yaml(self) -> str:
        """The policy in force, as YAML for `set`; the rules of the site as a comment."""
        policy = yaml.safe_dump(describe(self.spec), sort_keys=False)
        if not self.planning:
            return policy
        planning = yaml.safe_dump({"planning": dict(self.planning)}, sort_keys=False)
        return policy + "".join(f"# {line}\n" for line in planning.splitlines())

    def replace(self, text: str, cycles: Cycles) -> None:
        """Puts another policy in force, from the next cycle on.

        Raises:
            ConfigError: it is not YAML, not a policy, or a policy for simulations only.
        """
        try:
            value = yaml_text.load(text)
        except yaml_text.NoYaml as error:
            raise ConfigError("policy", f"is not valid YAML: {error}") from error
        if isinstance(value, dict) and set(value) == {"policy"}:
            value = value["policy"]
        spec = for_live(parse_policy(value))
        policy = build(spec)
        with cycles.lock:
            self._decider.exchange(policy)
            self.spec = spec
            self.changes += 1
        self._changed(spec.name)

    def bear(self, patience_s: float) -> None:
        """Limits the budgets of the policy by the controller's timeout; before a cycle.

        Args:
            patience_s: the timeout; 0: unknown.
        """
        before, known_s = self._borne
        if not patience_s or (self.spec is before and patience_s <= known_s * _LONGER):
            return
        self._borne = self.spec, patience_s
        held, sentences = within(self.spec, patience_s)
        for sentence in sentences:
            _log.warning("policy %s: %s", self.spec.name, sentence)
        if sentences or self.spec is before:
            self._decider.exchange(build(held))

    def obey(self, planning: PlanningSection, cycles: Cycles) -> list[str]:
        """Puts other rules of the site in force, from the next cycle on.

        Returns:
            The jobs stranded in the plan of the last cycle, a sentence for each; the next cycle
            plans them again.
        """
        site = self._resolved.site(planning.site())
        with cycles.lock:
            self._decider.site = site
            self.planning = planning.plain()
            self.changes += 1
        if cycles.published is None:
            return []
        plan = cycles.published.plan
        snapshot = as_planned(cycles.published.snapshot, plan)
        found = stranded(lower(site, snapshot), plan)
        return [f"job {snapshot.jobs.id[plan.job[one.row]]}: {one.text}" for one in found]
