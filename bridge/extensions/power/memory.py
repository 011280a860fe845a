# SPDX-License-Identifier: Apache-2.0
"""Measured and learnt power of jobs, as columns of each snapshot; kept in the memory file.

The file keeps it with the knowledge of predictors; policies see the columns only.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from bridge.errors import BridgeError
from bridge.extensions.power.columns import NAME as POWER
from bridge.extensions.power.draws import NAME, learnt_bounds, observed
from bridge.extensions.power.measured import measured, node_types
from bridge.extensions.power.power_use import PowerUse, Watts, state_models
from bridge.extensions.power.rules import PowerRules, power_of
from bridge.model.job import JobTable
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.rpc.agents.hub import Hub

_log = logging.getLogger(__name__)


class PowerMemory:
    """Connects the agents, the cycle and the store."""

    def __init__(self, hub: Hub | None, rules: Callable[[], PowerRules | None]) -> None:
        """Starts without knowledge.

        Args:
            hub: the hub of the agents; None: nothing is measured.
            rules: in force at present.
        """
        self._hub, self._rules = hub, rules
        self._learnt = Learnt()
        self._typed: tuple[object, object] = (None, None)
        self._pending: tuple[JobTable, object, JobTable] | None = None

    def take(self, state: State) -> State:
        """Merges this part of a stored state; returns the state without it."""
        found = state.learnt.get(NAME)
        if found is None:
            return state
        known = Layers({**found.known, **self._learnt.known})
        self._learnt = replace(self._learnt, known=known)
        others = {name: its for name, its in state.learnt.items() if name != NAME}
        return replace(state, learnt=others)

    def put(self, state: State) -> State:
        """A state for the store, with this part."""
        known = self._learnt.known
        return replace(state, learnt={**state.learnt, NAME: Learnt(known)}) if known else state

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with measured and learnt power; learns from it."""
        try:
            return self._overlaid(snapshot)
        except Exception:  # the estimates of users and the site are then used
            _log.exception("the power of jobs is unknown in this cycle")
            return snapshot

    def _overlaid(self, snapshot: Snapshot) -> Snapshot:
        if self._hub is not None:
            self._state_types(snapshot, self._hub)
            power = self._hub.extensions.get(POWER)
            snapshot = snapshot if power is None else measured(snapshot, power)
        self._learnt = observed(snapshot, self._learnt)
        if not self._learnt.known:
            return snapshot
        running = snapshot.running
        min_w, max_w = learnt_bounds(self._learnt, running.user, running.name)
        running = replace(running, learnt_min_power_w=min_w, learnt_max_power_w=max_w)
        return replace(snapshot, jobs=self._waiting(snapshot.jobs), running=running)

    def _waiting(self, jobs: JobTable) -> JobTable:
        """The waiting jobs with their expected draw.

        The same table object while neither the jobs nor the knowledge have changed, because others
        cache results for a table.
        """
        known = self._learnt.known
        if self._pending is None or self._pending[0] is not jobs or self._pending[1] is not known:
            min_w, max_w = learnt_bounds(self._learnt, jobs.user, jobs.name)
            found = jobs
            if max_w.any():
                found = replace(jobs, learnt_min_power_w=min_w, learnt_max_power_w=max_w)
            self._pending = jobs, known, found
        return self._pending[2]

    def _state_types(self, snapshot: Snapshot, hub: Hub) -> None:
        rules = self._rules()
        if self._typed[0] is rules and self._typed[1] is snapshot.nodes:
            return
        try:
            state_types(hub, node_types(snapshot, rules))
        except BridgeError as error:
            _log.error("the nodes' types are not known to the agents: %s", error)
        self._typed = rules, snapshot.nodes


def state_types(hub: Hub, types: Mapping[str, Watts]) -> None:
    """Idle and maximum power of nodes, W: for their models, and to judge what they report."""
    power: PowerUse | None = hub.extensions.get(POWER)
    if power is None or types == power.types:
        return
    before = power.types
    power.state_types(types)
    power.forget(set(before) - set(types))
    changed = {node: its for node, its in types.items() if before.get(node) != its}
    for agent in hub.agents():
        state_models(agent, changed)


class PowerMemories:
    """See `bridge.extensions.service_port.Memories`."""

    def memory(self, hub: Hub | None, site: Callable[[], Site]) -> PowerMemory:
        """A memory without knowledge."""
        return PowerMemory(hub, lambda: power_of(site()))
