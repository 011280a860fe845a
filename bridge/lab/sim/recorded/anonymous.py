# SPDX-License-Identifier: Apache-2.0
"""Removes the names of people and their jobs from recordings.

Rules
    1. Users, accounts and jobs get numbers in order of appearance. One object gives a name the same
       number in every recording; the number does not reveal the name.
    2. Reservations and pools of rules get numbers, too, as they are often named after people.
    3. What predictors learnt about users is removed, and so is a kept plan. Announced starts stay,
       and so do predictions for this cycle's jobs and the account of `search`, which knows jobs by
       their ids alone.
    4. Free text is removed: descriptions of node states, why the controller holds a job, why a job
       waits (the reason's code stays), notes, and where the recording was made.
    5. Job ids, times, amounts, and names of nodes, partitions, features and licences stay: a replay
       needs them.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from bridge.model.job_columns import objects
from bridge.model.learnt import Learnt
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.dispatch.account import NAME
from bridge.ports import Promises, State
from bridge.recording.recordings import Recording

_PEOPLE = {"user": "user", "account": "account", "name": "job"}
_RULES = {"user": "user", "users": "user", "account": "account", "accounts": "account"}
_EVERYBODY = "*"
_SAID = ("trace", "acknowledge", "computer", "installation", "system", "stream", "policy")


class Pseudonyms:
    """Names and their numbers."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def of(self, recording: Recording) -> Recording:
        """The recording without the names of people and jobs."""
        snapshot, plan, promises = recording.snapshot, recording.plan, recording.state.promises
        reasons = tuple(
            None if reason is None else Reason(reason.code, "") for reason in plan.reasons
        )
        return replace(
            recording,
            snapshot=self._snapshot(snapshot),
            state=State(
                Promises(promises.by, dict(promises.start_s)),
                {NAME: Learnt(recording.state.learnt_by(NAME).known)},
            ),
            planning=self._rules(dict(recording.planning)),
            plan=replace(plan, reasons=reasons, notes=()),
            origin={key: text for key, text in recording.origin.items() if key in _SAID},
        )

    def _name(self, kind: str, name: str) -> str:
        if not name or name == _EVERYBODY:
            return name
        known = self._known.setdefault(kind, {})
        return known.setdefault(name, f"{kind}{len(known) + 1}")

    def _snapshot(self, snapshot: Snapshot) -> Snapshot:
        tables = {
            table.name: self._table(getattr(snapshot, table.name))
            for table in fields(snapshot)
            if is_dataclass(getattr(snapshot, table.name)) and table.name != "nodes"
        }
        jobs = replace(tables["jobs"], hold_text=objects("" for _ in range(len(snapshot.jobs))))
        reservations = tuple(
            replace(kept, name=self._name("reservation", kept.name))
            for kept in snapshot.reservations
        )
        nodes = snapshot.nodes
        state = tuple("UP" if usable else "DOWN" for usable in nodes.usable.tolist())
        return replace(
            snapshot,
            **{**tables, "jobs": jobs},
            nodes=replace(nodes, state=state),
            reservations=reservations,
        )

    def _table(self, table: Any) -> Any:
        columns = {
            column: objects(self._name(kind, name) for name in getattr(table, column).tolist())
            for column, kind in _PEOPLE.items()
            if hasattr(table, column)
        }
        return replace(table, **columns)

    def _rules(self, rules: dict[str, object]) -> dict[str, object]:
        """Replaces the users and accounts in limits and FreePools."""
        return {key: self._rule(key, value) for key, value in rules.items()}

    def _rule(self, key: str, value: object) -> object:
        if isinstance(value, dict):
            return self._rules(value)
        if isinstance(value, list | tuple):
            return [self._rule(key, each) for each in value]
        kind = _RULES.get(key, "pool" if key == "name" else "")
        return self._name(kind, value) if kind and isinstance(value, str) else value
