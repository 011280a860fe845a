# SPDX-License-Identifier: Apache-2.0
"""The real service, and decisions about running jobs and guests that a test writes down.

Usage: told_service.py ORDERS_FILE RESULTS_FILE -- ARGUMENTS of schedbridge

Rules
    1. Each line of ORDERS_FILE is a JSON object: key, job, and one of nodes (a resize), progress (a
       text), requeue (a reason), extend (seconds) and host (the job is started as this one's
       guest). With "stale" true the decision names another version of the job. It is sent with the
       next reply after the job was reported as running; a guest, as waiting.
    2. RESULTS_FILE gets a JSON line for each result (key, outcome, code, text, and lock_ms, the
       longest hold of Slurm's locks since the call before), and one for each report of a running
       job: job, version, nodes, head, end_s, host, consent, hosted_s, since_s, extended_s.
    3. An order with a share (job, node, milli_cpus, weight, guest) is no decision: agents are told
       it, with all earlier ones of the same kind, until one with "shares" null drops them all.
    4. All decisions of the real service are still sent, under other numbers. The controller is
       asked to call every second.
"""

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bridge.cli.main import main
from bridge.extensions.sharing.share_orders import ShareOrders, Shares
from bridge.model.hostlist import expand
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import agent_pb2 as agent_pb
from bridge.rpc.pb import scheduler_pb2 as pb

FIRST_ID = 1 << 62
OUTCOMES = {value.number: value.name for value in pb.Outcome.DESCRIPTOR.values}

Unaltered = Callable[..., pb.CycleReply]


class Told:
    """Mixes the decisions of a test into the replies of the real service."""

    def __init__(self, orders: Path, results: Path) -> None:
        self._orders, self._results = orders, results
        self._read = 0
        self._waiting: list[dict[str, object]] = []
        self._versions: dict[str, int] = {}
        self._pending: dict[str, int] = {}
        self._nodes: dict[str, str] = {}
        self.shares: dict[str, tuple[agent_pb.Share, ...]] = {}
        self._keys: dict[int, str] = {}
        self._own_id: dict[int, int] = {}
        self._ids = itertools.count(FIRST_ID)

    def run(self, unaltered: Unaltered, request: pb.CycleRequest) -> pb.CycleReply:
        self._note(request)
        reply = unaltered()
        for decision in reply.decisions:
            number = next(self._ids)
            self._own_id[number] = decision.id
            decision.id = number
        reply.wake_after_s = 1
        if not reply.need_full:
            self._tell(reply)
        return reply

    def _tell(self, reply: pb.CycleReply) -> None:
        lines = self._orders.read_text().splitlines() if self._orders.exists() else []
        self._waiting += [json.loads(line) for line in lines[self._read :]]
        self._read = len(lines)
        for order in self._waiting:
            self._share(order)
        self._waiting = [order for order in self._waiting if "job" in order]
        ready = [order for order in self._waiting if order["job"] in self._known(order)]
        self._waiting = [order for order in self._waiting if order not in ready]
        for order in ready:
            job = str(order["job"])
            decision = reply.decisions.add(id=next(self._ids), job_id=job)
            decision.job_version = self._known(order)[job] ^ bool(order.get("stale"))
            if "host" in order:
                decision.start.host_job_id = str(order["host"])
                decision.start.nodes = str(order.get("on") or self._nodes[str(order["host"])])
            elif "requeue" in order:
                decision.requeue.reason = str(order["requeue"])
            elif "extend" in order:
                decision.extend.total_s = int(str(order["extend"]))
            elif "nodes" in order:
                decision.resize.nodes = str(order["nodes"])
            else:
                decision.progress.text = str(order["progress"])
            self._keys[decision.id] = str(order["key"])

    def _known(self, order: dict[str, object]) -> dict[str, int]:
        return self._pending if "host" in order else self._versions

    def _share(self, order: dict[str, object]) -> None:
        if "shares" in order:
            self.shares = {}
        if "share" in order:
            share = agent_pb.Share(**order["share"])  # type: ignore[arg-type]
            others = (it for it in self.shares.get(share.node, ()) if it.job != share.job)
            self.shares[share.node] = (*others, share)

    def _note(self, request: pb.CycleRequest) -> None:
        found: list[dict[str, object]] = []
        for job in request.jobs:
            self._pending.pop(job.id, None)
            if job.state != pb.JOB_STATE_RUNNING:
                self._versions.pop(job.id, None)
                if job.state == pb.JOB_STATE_PENDING:
                    self._pending[job.id] = job.version
                continue
            self._versions[job.id] = job.version
            self._nodes[job.id] = ",".join(use.nodes for use in job.allocation.uses)
            nodes = sorted(name for use in job.allocation.uses for name in expand(use.nodes))
            found.append(
                {
                    "job": job.id, "version": job.version, "nodes": nodes,
                    "head": job.allocation.head, "end_s": job.allocation.end_s,
                    "host": job.host_job_id, "consent": pb.Coschedule.Name(job.coschedule),
                    "hosted_s": job.hosted_s, "since_s": job.hosted_since_s,
                    "extended_s": job.extended_s,
                }
            )  # fmt: skip
        for result in request.fates:
            key = self._keys.pop(result.decision_id, None)
            result.decision_id = self._own_id.pop(result.decision_id, result.decision_id)
            if key is not None:
                found.append(
                    {
                        "key": key, "outcome": OUTCOMES[result.outcome], "code": result.code,
                        "text": result.text, "lock_ms": request.status.lock_ms_max,
                    }
                )  # fmt: skip
        with self._results.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in found)


def alter(orders: Path, results: Path) -> None:
    """Puts a `Told` between the cycles and the wire."""
    unaltered, told = Cycles.run, Told(orders, results)

    def altered(self: Cycles, request: pb.CycleRequest, *rest: object) -> pb.CycleReply:
        return told.run(lambda: unaltered(self, request, *rest), request)  # type: ignore[arg-type]

    Cycles.run = altered  # type: ignore[method-assign,assignment]
    planned = ShareOrders.planned

    def overruled(self: ShareOrders, shares: Shares) -> None:
        planned(self, {**shares, **told.shares})

    ShareOrders.planned = overruled  # type: ignore[method-assign]


if __name__ == "__main__":
    first, second, dashes, *words = sys.argv[1:]
    assert dashes == "--"
    alter(Path(first), Path(second))
    main(words)
