# SPDX-License-Identifier: Apache-2.0
"""Exchanges the policy, or the limits and FreePools it obeys, between two cycles."""

from collections.abc import Callable, Mapping

import yaml

from bridge.errors import ConfigError
from bridge.loop import Decider
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.believing import as_planned
from bridge.planning.conditions import Conditions, HasConditions
from bridge.planning.rules import lower, stranded, unknown_resources
from bridge.planning.rules_text import parse_rules
from bridge.registry import build, describe, for_living, parse_policy, with_rules
from bridge.rpc.cycles import Cycles
from bridge.units import DAY_S

_HORIZON_S = 60 * DAY_S


class PolicySwitch:
    """What decides from the next cycle on.

    Attributes:
        spec: the policy in force, with the rules it obeys.
    """

    def __init__(
        self,
        spec: PolicySpec,
        decider: Decider,
        changed: Callable[[str], None] = lambda _name: None,
        *,
        rules: Mapping[str, object] | None = None,
    ) -> None:
        """Begins with a policy that the decider has already.

        Args:
            spec: as configured.
            decider: of the service.
            changed: told the name of every new policy.
            rules: the site's limits and FreePools; for policies that take any and state none.
        """
        self._asked = spec
        self._rules = rules or {}
        self.spec = with_rules(spec, self._rules)
        self._changed = changed
        self._decider = decider

    def name(self) -> str:
        """The policy's name, for people."""
        return self.spec.name

    def conditions(self) -> Conditions:
        """What the policy in force holds its plans to."""
        stage = self._decider.policy.plan
        return stage.conditions if isinstance(stage, HasConditions) else Conditions()

    def unknown(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Resources in the limits and FreePools in force that a cluster does not have."""
        return unknown_resources(self.conditions().rules, snapshot)

    def yaml(self) -> str:
        """The policy in force, as YAML that `set` takes."""
        return yaml.safe_dump(describe(self.spec), sort_keys=False)

    def replace(self, text: str, cycles: Cycles) -> None:
        """Puts another policy in force, from the next cycle on.

        Raises:
            ConfigError: it is no YAML, or no policy, or one for simulations only.
        """
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ConfigError("policy", "is no valid YAML") from error
        if isinstance(value, dict) and set(value) == {"policy"}:
            value = value["policy"]
        self._install(for_living(parse_policy(value)), self._rules, cycles)

    def obey(self, rules: Mapping[str, object], cycles: Cycles) -> list[str]:
        """Puts other limits and FreePools in force, from the next cycle on.

        Args:
            rules: as the section `planning` of the configuration.
            cycles: of the service.

        Returns:
            What that strands in the plan of the last cycle: a sentence for each job, which gets
            another place in the next one.

        Raises:
            ConfigError: the rules are wrong; those in force stay.
        """
        parsed = parse_rules(rules)
        self._install(self._asked, rules, cycles)
        if "rules" not in self.spec.plan.parameters or cycles.published is None:
            return []
        plan = cycles.published.plan
        snapshot = as_planned(cycles.published.snapshot, plan)
        found = stranded(lower(parsed, snapshot, _HORIZON_S), plan)
        return [f"job {snapshot.jobs.id[plan.job[one.row]]}: {one.text}" for one in found]

    def _install(self, asked: PolicySpec, rules: Mapping[str, object], cycles: Cycles) -> None:
        spec = with_rules(asked, rules)
        policy = build(spec)
        with cycles.lock:
            self._decider.policy = policy
            self._asked, self._rules, self.spec = asked, rules, spec
        self._changed(spec.name)
