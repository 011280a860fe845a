# SPDX-License-Identifier: Apache-2.0
"""Hosts and guests in messages; see `bridge.rpc.reported.extension_wire.Wire`."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import SharedNodes, requeues
from bridge.extensions.sharing.quotas import USUAL_WEIGHT, Quotas
from bridge.extensions.sharing.requests import EXTEND, QUOTA, SharingRequests, sentences_on
from bridge.model.job import RunningTable
from bridge.model.job_columns import objects
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ObeyedActions, Wire
from bridge.rpc.reported.features import Action, Feature, Subject
from bridge.rpc.reported.hostlist import NodeIndex


class SharingObeyed(ObeyedActions):
    """What a simulated controller carries out: quotas stay, all else is done once."""

    def __init__(self) -> None:
        """Starts without decisions."""
        self._quotas: dict[str, tuple[int, int]] = {}
        self._requeues: list[tuple[str, str]] = []
        self._extensions: dict[str, int] = {}

    def obey(self, decision: pb.Decision, nodes: NodeIndex) -> None:  # noqa: ARG002
        """Takes a quota, a requeue or a longer limit."""
        match decision.WhichOneof("action"):
            case "quota":
                quota = decision.quota
                self._quotas[decision.job_id] = (
                    quota.milli_cpus_per_node, quota.weight or USUAL_WEIGHT
                )  # fmt: skip
            case "requeue":
                self._requeues.append((decision.job_id, decision.requeue.reason))
            case "extend":
                self._extensions[decision.job_id] = decision.extend.total_s

    def part(self, snapshot: Snapshot, starts: Sequence[pb.Start]) -> SharedNodes | None:
        """Guests that start, and the quotas of running jobs; those of ended ones are forgotten."""
        there = set(snapshot.running.id.tolist())
        self._quotas = {
            job_id: quota
            for job_id, quota in self._quotas.items()
            if job_id in there and quota != (0, USUAL_WEIGHT)
        }
        quotas = np.array(list(self._quotas.values()), dtype=np.int64).reshape(-1, 2)
        part = SharedNodes(
            Quotas(objects(self._quotas), quotas[:, 0].copy(), quotas[:, 1].copy()),
            objects(start.host_job_id for start in starts),
            requeues(self._requeues),
            Extensions.of(self._extensions),
        )
        self._requeues, self._extensions = [], {}
        return part if len(part) else None


def _action(feature: str) -> Action:
    return Action(feature, Subject.RUNNING_JOB, SharingRequests.__module__)


class SharingWire(Wire):
    """The actions on hosts and guests, and the hosts of starts."""

    actions: Mapping[str, Action] = {
        "quota": _action(QUOTA),
        "requeue": _action(Feature.SHARE),
        "extend": _action(EXTEND),
    }
    needs: Mapping[str, str] = {"host_id": Feature.SHARE, "extendable": EXTEND}

    def start_fields(self, part: SharedNodes, row: int) -> Mapping[str, str]:
        """The host of a guest."""
        return {"host_job_id": part.host_of(row)}

    def sentences(self, running: RunningTable) -> Iterator[tuple[str, str]]:
        """On guests and hosts."""
        return sentences_on(running)

    def requests(self, take_id: Callable[[], int]) -> SharingRequests:
        return SharingRequests(take_id)

    def obeyed(self) -> SharingObeyed:
        return SharingObeyed()
