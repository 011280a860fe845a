# SPDX-License-Identifier: Apache-2.0
"""Quotas, requeues and longer limits of running jobs, on the wire; and what users see of guests.

Rules
    1. A quota is sent when it differs from the last one sent. If the plan drops the quota of a
       running job, the removal is sent.
    2. A guest is requeued once per run: the decision is sent again if the controller refused it, or
       has not answered for `REQUEUE_AGAIN_S`.
    3. The extension of a host's limit is sent when the plan's differs from the last one sent, and
       again if the report does not show it after `EXTEND_AGAIN_S`. It is absolute, so a repetition
       does no harm.
    4. To a controller that has restarted, nothing of this is known: it gets new `SharingRequests`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from bridge.extensions.sharing.longer_limits import Extensions, whole_minutes_s
from bridge.extensions.sharing.part import Requeues, shared_of
from bridge.extensions.sharing.quotas import USUAL_WEIGHT, Quotas
from bridge.model.job import RunningTable, rows_by_id
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import Requests
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain

QUOTA: Final = "quota"
"""The feature: the controller limits the CPUs of a running job itself."""
EXTEND: Final = "extend"
"""The feature: it lengthens the time limit of a running job."""
_NO_QUOTA: Final = (0, USUAL_WEIGHT)
REQUEUE_AGAIN_S: Final = 30
EXTEND_AGAIN_S: Final = 30


class SharingRequests(Requests):
    """The requests to one controller about hosts and guests."""

    def __init__(self, take_id: Callable[[], int]) -> None:
        """Starts without requests.

        Args:
            take_id: gives the number of the next decision.
        """
        self._take_id = take_id
        self._quotas: dict[str, tuple[int, int]] = {}
        self._requeued: dict[str, tuple[int, int]] = {}
        self._extended: dict[str, tuple[int, int]] = {}

    def close(self, result: pb.Fate, now_s: int) -> bool:  # noqa: ARG002
        """Reads a result; False if it does not belong to a requeue."""
        for job_id, (decision, _) in list(self._requeued.items()):
            if decision == result.decision_id:
                if result.outcome != pb.OUTCOME_APPLIED:
                    del self._requeued[job_id]
                return True
        return False

    def decide(
        self,
        snapshot: Snapshot,
        plan: Plan,
        nodes: NodeIndex,  # noqa: ARG002
        features: frozenset[str],
    ) -> list[pb.Decision]:
        """The requests to the controller now."""
        part, found = shared_of(plan), list[pb.Decision]()
        if not (len(part) or self._quotas or self._requeued or self._extended):
            return found
        if QUOTA in features:
            found += self._new_quotas(snapshot, part.quotas)
        if Feature.SHARE in features:
            found += self._new_requeues(snapshot, part.requeues)
        if EXTEND in features:
            found += self._new_extensions(snapshot, part.extensions)
        return found

    def _message(self, running: RunningTable, row: int) -> pb.Decision:
        return pb.Decision(
            id=self._take_id(), job_id=running.id[row], job_version=int(running.version[row])
        )

    def _new_quotas(self, snapshot: Snapshot, quotas: Quotas) -> list[pb.Decision]:
        """Quotas that have changed (rule 1)."""
        rows, found = rows_by_id(snapshot.running), []
        columns = (quotas.id, quotas.milli_cpus_per_node, quotas.weight)
        ids, *values = (column.tolist() for column in columns)
        wanted = dict(zip(ids, zip(*values, strict=True), strict=True))
        for job_id in sorted(wanted.keys() | self._quotas.keys()):
            quota, weight = now = wanted.get(job_id, _NO_QUOTA)
            if job_id not in rows:  # it ended, or starts now
                self._quotas.pop(job_id, None)
            elif now != self._quotas.get(job_id, _NO_QUOTA):
                self._quotas[job_id] = now
                message = self._message(snapshot.running, rows[job_id])
                message.quota.milli_cpus_per_node, message.quota.weight = quota, weight
                found.append(message)
        return found

    def _new_requeues(self, snapshot: Snapshot, requeues: Requeues) -> list[pb.Decision]:
        """Requeues to be sent, once for each run (rule 2)."""
        rows, now_s, found = rows_by_id(snapshot.running), snapshot.now_s, []
        self._requeued = {
            job_id: sent
            for job_id, sent in self._requeued.items()
            if job_id in rows and abs(now_s - sent[1]) < REQUEUE_AGAIN_S
        }
        for job_id, reason in zip(requeues.id.tolist(), requeues.reasons, strict=True):
            if job_id in self._requeued or job_id not in rows:
                continue
            message = self._message(snapshot.running, rows[job_id])
            message.requeue.reason = plain(reason)
            self._requeued[job_id] = message.id, now_s
            found.append(message)
        return found

    def _new_extensions(self, snapshot: Snapshot, longer: Extensions) -> list[pb.Decision]:
        """Extensions to be sent: changed ones, and those that the report does not show (rule 3)."""
        rows, now_s, found, sent = rows_by_id(snapshot.running), snapshot.now_s, [], {}
        for job_id, total_s in zip(longer.id.tolist(), longer.total_s.tolist(), strict=True):
            if job_id not in rows:
                continue
            wanted_s = whole_minutes_s(total_s)
            before_s, at_s = self._extended.get(job_id, (0, 0))
            if wanted_s == before_s and abs(now_s - at_s) < EXTEND_AGAIN_S:
                sent[job_id] = before_s, at_s
                continue
            message = self._message(snapshot.running, rows[job_id])
            message.extend.total_s = total_s
            sent[job_id] = wanted_s, now_s
            found.append(message)
        self._extended = sent
        return found


def sentences_on(running: RunningTable) -> Iterator[tuple[str, str]]:
    """For guests and hosts about each other, and for hosts whose limits grew; job and text."""
    guests_of: dict[str, list[str]] = {}
    longer = {
        str(running.id[row]): f"time limit {int(running.extended_s[row]) // 60} min longer: "
        for row in running.extended_s.nonzero()[0].tolist()
        if not running.host_id[row]
    }
    for row in running.host_id.nonzero()[0].tolist():
        guest, host = str(running.id[row]), str(running.host_id[row])
        guests_of.setdefault(host, []).append(guest)
        yield guest, plain(f"a guest on the nodes of job {host}")
    for host, guests in guests_of.items():
        who = "a guest, job" if len(guests) == 1 else f"{len(guests)} guests, jobs"
        yield host, plain(f"{longer.pop(host, '')}shares its nodes with {who} {', '.join(guests)}")
    for host, text in longer.items():
        yield host, plain(f"{text}guests shared its nodes")
