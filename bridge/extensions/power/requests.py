# SPDX-License-Identifier: Apache-2.0
"""Nodes to be powered down and up, on the wire.

Rules
    1. A node is named once: until the controller's report shows the requested change, it is
       requested again only after `AGAIN_S`. A node for which it was refused, other than for being
       busy, is not named for `REFUSED_S`. After a report has shown the change, the node may be
       named again at any time.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from bridge.extensions.power.changes import changes_of
from bridge.extensions.power.columns import saving_of
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import Requests
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain

AGAIN_S: Final = 60
REFUSED_S: Final = 600


class PowerRequests(Requests):
    """The requests to one controller to power nodes down and up."""

    def __init__(self, take_id: Callable[[], int]) -> None:
        """Starts without requests.

        Args:
            take_id: gives the number of the next decision.
        """
        self._take_id = take_id
        self._silent_until_s: dict[tuple[str, bool], int] = {}
        self._sent: dict[int, tuple[tuple[str, ...], bool]] = {}

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Reads a result; False if it does not belong to a request of these."""
        sent = self._sent.pop(result.decision_id, None)
        if sent is None:
            return False
        if result.outcome not in (pb.OUTCOME_APPLIED, pb.OUTCOME_BUSY):
            names, up = sent
            self._silent_until_s.update({(name, up): now_s + REFUSED_S for name in names})
        return True

    def decide(
        self,
        snapshot: Snapshot,
        plan: Plan,
        nodes: NodeIndex,
        features: frozenset[str],  # noqa: ARG002
    ) -> list[pb.Decision]:
        """The requests to the controller now (rule 1)."""
        now_s, found = snapshot.now_s, []
        silent = self._silent_until_s
        shown = _shown(snapshot, nodes, silent)
        for key in [key for key, until_s in silent.items() if until_s <= now_s or key in shown]:
            del silent[key]
        changes = changes_of(plan)
        for wanted, up in ((changes.down, False), (changes.up, True)):
            names = {node: snapshot.nodes.names[node] for node in wanted.tolist()}
            requested = [node for node, name in names.items() if (name, up) not in silent]
            if not requested:
                continue
            message = pb.Decision(id=self._take_id())
            message.power.nodes = nodes.fold(np.array(requested, dtype=np.int32))
            message.power.up = up
            reason = "jobs are planned there" if up else changes.reason
            message.power.reason = plain(reason)
            silent.update({(names[node], up): now_s + AGAIN_S for node in requested})
            self._sent[message.id] = tuple(names[node] for node in requested), up
            found.append(message)
        return found


def _shown(
    snapshot: Snapshot, nodes: NodeIndex, requested: Iterable[tuple[str, bool]]
) -> set[tuple[str, bool]]:
    """The nodes in the requested state: off, or on or on the way up."""
    saving = saving_of(snapshot.nodes)
    found: set[tuple[str, bool]] = set()
    if saving is None:
        return found
    for name, up in requested:
        at = nodes.index.get(name)
        if at is not None and up == bool(not saving.off[at] or saving.resuming[at]):
            found.add((name, up))
    return found
