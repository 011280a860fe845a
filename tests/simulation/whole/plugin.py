# SPDX-License-Identifier: Apache-2.0
"""A model of the plugin in slurmctld, from docs/design/0002-shim.md and bridge/shim/cycle/cycle.c.

It keeps only what it sent (its sent state), sends differences on generations, carries decisions out
under the cluster's own checks, tells their outcomes with the next call, and lets Slurm schedule
when nobody answers for `SILENCE_MS`.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from bridge.rpc.pb import scheduler_pb2 as pb
from tests.simulation.whole.cluster import Cluster, Job, Refused, Reservation, names_in
from tests.simulation.whole.history import History
from tests.simulation.whole.network import Failed, Network
from tests.simulation.whole.schedule import Schedule

SILENCE_MS = 5_000
RETRY_MS = 250
FALLBACK_RETRY_MS = 1_000
LOOK_MS = 10
PACE_MS = 200
TICK_MS = 10_000
CALM_TICK_MS = 600_000
"""Where only one controller calls nobody minds how long it is silent: runs are shorter so."""


@dataclass
class _Call:
    """The call that is under way."""

    number: int
    began_ms: int
    over: bool = False


class Plugin:
    """One life of the plugin; a controller that restarts gets a new one.

    Attributes:
        name: of this controller in the history.
        untrue: spoils a report before it is sent; None: reports are true.
        active: whether it applies what it is told.
        tick_ms: it calls at least so often.
    """

    def __init__(
        self, name: str, epoch: int, *, cluster: Cluster, network: Network, schedule: Schedule,
        history: History, calls: Callable[[], int], active: bool = True,
    ) -> None:  # fmt: skip
        self.name, self.epoch, self.active = name, epoch, active
        self.untrue: Callable[[pb.CycleRequest], str] | None = None
        self.alive = True
        self.tick_ms = CALM_TICK_MS
        self._cluster, self._network = cluster, network
        self._schedule, self._history, self._calls = schedule, history, calls
        self._generation = 0
        self._service_epoch = 0
        self._greeted = False
        self._full = True
        self._jobs: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._tables: dict[str, bytes] = {}
        self._outcomes: list[pb.Fate] = []
        self._urgent = False
        self._call: _Call | None = None
        self._silent_ms: int | None = None
        self._fallback = False
        self._look_ms: int | None = None
        self._next_ms = 0
        self._tick_ms = 0
        self._ended: list[tuple[Job, int, str]] = []
        history.add(schedule.now_ms, "controller_up", name=name, epoch=epoch, active=active)
        self.look(LOOK_MS)

    def stop(self) -> None:
        """Its controller dies."""
        self.alive = False
        self._history.add(self._schedule.now_ms, "controller_down", name=self.name)

    def changed(self) -> None:
        """Something changed in the cluster."""
        self.look(LOOK_MS)

    def look(self, delay_ms: int) -> None:
        """Looks in a while, if not before."""
        when = max(self._schedule.now_ms + delay_ms, self._next_ms)
        if self._look_ms is not None and self._look_ms <= when:
            return
        self._look_ms = when
        self._schedule.at(when, lambda: self._run(when))

    def _run(self, when: int) -> None:
        if when != self._look_ms:
            return
        self._look_ms = None
        if not self.alive or self._call is not None:
            return
        if not self._greeted:
            self._hello()
        else:
            self._cycle()

    # ------------------------------------------------------------ silence

    def _failed(self, what: str, why: str) -> None:
        now = self._schedule.now_ms
        if self._silent_ms is None:
            self._silent_ms = now
        self._history.add(now, "silence", name=self.name, what=what, why=why)
        self._forget()
        if now - self._silent_ms >= SILENCE_MS - RETRY_MS and not self._fallback:
            self._fallback = True
            self._history.add(now, "fallback", name=self.name, on=True)
        if self._fallback and self.active:
            self._cluster.backfill()
        self.look(FALLBACK_RETRY_MS if self._fallback else RETRY_MS)

    def _forget(self) -> None:
        self._jobs, self._nodes, self._tables = {}, {}, {}
        self._greeted, self._full = False, True

    def _answered(self) -> None:
        self._silent_ms = None
        if self._fallback:
            self._fallback = False
            self._history.add(self._schedule.now_ms, "fallback", name=self.name, on=False)

    # ------------------------------------------------------------ calls

    def _send(self, method: str, data: bytes, heard: Callable[[bytes], None], number: int) -> None:
        call = _Call(number, self._schedule.now_ms)
        self._call = call

        def over(answer: bytes | Failed) -> None:
            if call.over or not self.alive:
                return
            call.over, self._call = True, None
            if isinstance(answer, Failed):
                self._failed(method, str(answer))
            else:
                heard(answer)

        left = SILENCE_MS
        if self._silent_ms is not None and not self._fallback:
            left = max(SILENCE_MS - (self._schedule.now_ms - self._silent_ms), RETRY_MS)
        self._schedule.after(left, lambda: over(Failed("DEADLINE_EXCEEDED", "no answer in time")))
        self._network.call(method, data, number, over, lambda: not call.over and self.alive)

    def _hello(self) -> None:
        hello = pb.HelloRequest(
            wire_version=1, controller=f"model {self.name}", epoch=self.epoch, cluster="sim",
            features=["start", "planned_start", "pending_reason", "reserve", "choice"],
            memory_consumable=self._cluster.memory_counts, memory_optional=True,
        )  # fmt: skip
        self._send("Hello", hello.SerializeToString(), self._welcome, self._calls())

    def _welcome(self, data: bytes) -> None:
        reply = pb.HelloReply.FromString(data)
        if reply.wire_version != 1 or not reply.service_epoch:
            self._failed("Hello", "another wire version")
            return
        if reply.service_epoch != self._service_epoch:
            self._outcomes.clear()  # of decisions that nobody remembers
        self._service_epoch = reply.service_epoch
        self._forget()
        self._greeted = True
        self._cycle()

    def _cycle(self) -> None:
        if self.active:
            self._cluster.judge_deadlines()
        now = self._schedule.now_ms
        request, news = self._scan()
        if not (self._full or self._urgent or news or now >= self._tick_ms):
            self.look(self._tick_ms - now)
            return
        self._tick_ms = now + self.tick_ms
        self._next_ms = now + PACE_MS
        request.epoch = self.epoch
        request.base_generation = 0 if self._full else self._generation
        self._generation += 1
        request.generation = self._generation
        request.now_s = self._cluster.now_s
        request.fates.extend(self._outcomes)
        request.status.CopyFrom(pb.ControllerStatus(fallbacks=int(self._fallback)))
        untrue = self.untrue(request) if self.untrue is not None else ""
        number = self._calls()
        self._history.add(
            now, "report", name=self.name, call=number, generation=request.generation,
            base=request.base_generation, full=self._full, now_s=request.now_s,
            jobs=[job.id for job in request.jobs], removed=list(request.removed_jobs),
            untrue=untrue, active=self.active,
            outcomes=[fate.decision_id for fate in request.fates],
        )  # fmt: skip
        self._send("Cycle", request.SerializeToString(), lambda data: self._heed(data, number),
                   number)  # fmt: skip

    def _heed(self, data: bytes, number: int) -> None:
        reply = pb.CycleReply.FromString(data)
        now = self._schedule.now_ms
        known = reply.service_epoch == self._service_epoch
        good = known and not reply.need_full and reply.generation == self._generation
        self._history.add(now, "heard", name=self.name, call=number, good=good)
        if not good and self._full:
            self._failed("Cycle", "the service does not accept a full report")
            self._greeted = known
            return
        if not good:
            self._jobs, self._nodes, self._tables = {}, {}, {}
            self._full = True
            self._greeted = known
            self.look(LOOK_MS)
            return
        self._full = False
        self._outcomes.clear()
        self._urgent = False
        self._ended.clear()
        self._answered()
        if reply.wake_after_s:
            self._tick_ms = min(self._tick_ms, now + reply.wake_after_s * 1000)
        if self.active:
            for decision in reply.decisions:
                self._apply(decision)
        self.look(0 if self._urgent else self._tick_ms - now)

    # ------------------------------------------------------------ carrying out

    def _apply(self, decision: pb.Decision) -> None:
        outcome, text = self._verdict(decision)
        kind = decision.WhichOneof("action") or ""
        self._history.add(
            self._schedule.now_ms, "outcome", decision=decision.id, job=decision.job_id,
            action=kind, outcome=pb.Outcome.Name(outcome)[8:].lower(), text=text,
            epoch=self._service_epoch,
        )  # fmt: skip
        self._outcomes.append(
            pb.Fate(decision_id=decision.id, job_id=decision.job_id, outcome=outcome, text=text)
        )
        if outcome != pb.OUTCOME_APPLIED or kind in ("start", "reserve", "unreserve"):
            self._urgent = True

    def _verdict(self, decision: pb.Decision) -> tuple[pb.Outcome, str]:
        cluster = self._cluster
        kind = decision.WhichOneof("action")
        if kind == "reserve":
            requested = decision.reserve
            cluster.reserve(
                Reservation(
                    requested.name, requested.start_s, requested.end_s, names_in(requested.nodes)
                )
            )
            return pb.OUTCOME_APPLIED, ""
        if kind == "unreserve":
            cluster.unreserve(decision.unreserve.name)
            return pb.OUTCOME_APPLIED, ""
        job = cluster.jobs.get(decision.job_id)
        if job is None:
            return pb.OUTCOME_STALE, "the job is gone"
        if decision.job_id not in self._jobs:
            return pb.OUTCOME_STALE, "the job was not reported"
        if kind not in ("start", "planned_start", "pending"):
            return pb.OUTCOME_INVALID, "unknown action"
        if job.state != "pending":
            return pb.OUTCOME_STALE, "the job is no longer pending"
        if decision.job_version != job.ask.version:
            return pb.OUTCOME_STALE, "the job has changed"
        if kind == "start":
            return self._start(job, decision)
        return self._told(job, decision)

    def _start(self, job: Job, decision: pb.Decision) -> tuple[pb.Outcome, str]:
        cluster, start = self._cluster, decision.start
        nodes = names_in(start.nodes)
        if start.choice and not nodes:
            try:
                cluster.choose(job, names_in(start.choice), start.partition, by="choice")
            except Refused as error:
                return pb.OUTCOME_REFUSED, str(error)
            return pb.OUTCOME_APPLIED, ""
        cpus: dict[str, int] = {}
        if start.uses:
            for use in start.uses:
                cpus |= dict.fromkeys(names_in(use.nodes), use.cpus)
        elif start.tasks:
            ordered = [name for name in cluster.nodes if name in nodes]
            cpus = {
                name: tasks * job.ask.cpus
                for name, tasks in zip(ordered, start.tasks, strict=False)
            }
        elif job.ask.tasks and nodes:  # Slurm divides them as it likes
            each = job.ask.tasks * (1 if job.ask.chunks else job.ask.cpus) // len(nodes)
            cpus = dict.fromkeys(nodes, each)
        if not all(name in cluster.nodes for name in nodes) or not nodes:
            return pb.OUTCOME_INVALID, f"unknown nodes {start.nodes}"
        try:
            cluster.start(job, nodes, start.partition, cpus, by="service")
        except Refused as error:
            return pb.OUTCOME_REFUSED, str(error)
        return pb.OUTCOME_APPLIED, ""

    def _told(self, job: Job, decision: pb.Decision) -> tuple[pb.Outcome, str]:
        if decision.HasField("planned_start"):
            planned = decision.planned_start
            reason, job.told_s = planned.reason, planned.start_s
            nodes = names_in(planned.nodes)
            if planned.start_s < self._cluster.now_s - 10:
                return pb.OUTCOME_INVALID, "the planned start lies in the past"
            if not set(nodes) <= set(self._cluster.nodes):
                return pb.OUTCOME_INVALID, "unknown nodes"
        else:
            reason, job.told_s, nodes = decision.pending, 0, ()
        self._history.add(
            self._schedule.now_ms, "told", job=job.id, start_s=job.told_s, nodes=list(nodes),
            code=reason.code, text=reason.text, now_s=self._cluster.now_s,
        )  # fmt: skip
        return pb.OUTCOME_APPLIED, ""

    # ------------------------------------------------------------ reading

    def _scan(self) -> tuple[pb.CycleRequest, bool]:
        """What differs from the sent state, as a request; and whether anything does."""
        cluster, request = self._cluster, pb.CycleRequest()
        self._ended += cluster.ended if self.active else []
        if self.active:
            cluster.ended = []
        for job, end_s, why in self._ended:
            if end_s > job.start_s > 0:
                request.ended.add(
                    id=job.id, name="job", user=job.user, start_s=job.start_s, end_s=end_s,
                    time_limit_s=job.limit_s, ending=_ENDINGS[why],
                )  # fmt: skip
        messages = {job.id: self._job(job) for job in cluster.jobs.values()}
        prints = {name: _print(message) for name, message in messages.items()}
        for name, message in messages.items():
            if self._jobs.get(name) != prints[name]:
                request.jobs.append(message)
        request.removed_jobs.extend(name for name in self._jobs if name not in messages)
        self._jobs = prints
        nodes = {node.name: self._node(node.name) for node in cluster.nodes.values()}
        node_prints = {name: _print(message) for name, message in nodes.items()}
        for name, message in nodes.items():
            if self._nodes.get(name) != node_prints[name]:
                request.nodes.append(message)
        request.removed_nodes.extend(name for name in self._nodes if name not in nodes)
        self._nodes = node_prints
        news = bool(request.jobs or request.removed_jobs or request.nodes or request.removed_nodes)
        for name, table in self._side_tables().items():
            data = table.SerializeToString(deterministic=True)
            if self._tables.get(name) != data:
                getattr(request, name).CopyFrom(table)
                self._tables[name] = data
                news = True
        return request, news

    def _node(self, name: str) -> pb.Node:
        node = self._cluster.nodes[name]
        return pb.Node(
            name=name, cpus=node.cpus, threads_per_core=1, memory_mib=node.memory_mib,
            features=node.features, usable=node.usable, state="IDLE" if node.usable else "DOWN",
            weight=1,
        )  # fmt: skip

    def _side_tables(self) -> dict[str, pb.Partitions | pb.Reservations | pb.Licences]:
        cluster = self._cluster
        partitions, reservations, licences = pb.Partitions(), pb.Reservations(), pb.Licences()
        for room in cluster.partitions.values():
            partitions.items.add(
                name=room.name,
                nodes=",".join(room.nodes),
                up=room.up,
                max_time_s=room.most_s,
                exclusive=room.exclusive,
            )
        for item in cluster.reservations.values():
            reservations.items.add(
                name=item.name, start_s=item.start_s, end_s=item.end_s, nodes=",".join(item.nodes)
            )
        for name, total in cluster.licences.items():
            licences.items.add(name=name, total=total)
        return {"partitions": partitions, "reservations": reservations, "licences": licences}

    def _job(self, job: Job) -> pb.Job:
        message = pb.Job(
            id=job.id, version=job.ask.version, name="job", user=job.user, account=job.account
        )
        if job.state == "pending":
            self._pending(job, message)
            return message
        running = job.state == "running"
        message.state = pb.JOB_STATE_RUNNING if running else pb.JOB_STATE_COMPLETING
        held = message.allocation
        held.start_s = job.start_s
        held.end_s = job.start_s + job.limit_s if running else 0
        held.partition = job.partition
        held.exclusive = job.ask.exclusive or self._cluster.partitions[job.partition].exclusive
        for name, (cpus, memory) in job.nodes.items():
            held.uses.add(nodes=name, cpus=cpus, memory_mib=memory)
        if running:
            for name, count in job.ask.licences:
                held.licences.add(name=name, count=count)
        else:
            held.exclusive = True
        return message

    def _pending(self, job: Job, message: pb.Job) -> None:
        ask, cluster = job.ask, self._cluster
        message.state = pb.JOB_STATE_PENDING
        message.priority = 0 if job.held else job.priority
        message.submit_s = job.submit_s
        message.eligible_s = max(job.submit_s, job.begin_s)
        message.begin_s = job.begin_s
        message.time_limit_s = ask.limit_s
        message.deadline_s, message.min_time_s = ask.deadline_s, ask.least_s
        message.array_tasks = job.array_tasks
        message.array_startable = cluster.startable_tasks(job)
        message.hold = pb.HOLD_NONE
        own = cluster.reservations.get(ask.reservation)
        if job.held:
            message.hold, message.hold_text = pb.HOLD_HELD, "JobHeldUser"
        elif job.begin_s > cluster.now_s:
            message.hold, message.hold_text = pb.HOLD_BEGIN_TIME, "BeginTime"
        elif ask.reservation and (own is None or not own.start_s <= cluster.now_s < own.end_s):
            message.hold, message.hold_text = pb.HOLD_RESERVATION, "Reservation"
        elif job.array_tasks and not message.array_startable:
            message.hold, message.hold_text = pb.HOLD_ARRAY_LIMIT, "JobArrayTaskLimit"
        request = message.request
        request.partitions.extend(ask.partitions)
        request.min_nodes = ask.nodes
        request.max_nodes = max(ask.most_nodes, ask.nodes)
        request.tasks, request.cpus_per_task = ask.tasks, ask.cpus
        request.memory_per_node_mib = ask.memory_mib
        request.exclusive = ask.exclusive
        request.features = ask.features
        request.excluded_nodes = ",".join(ask.excluded)
        request.reservation = ask.reservation
        request.fixed_start = ask.fixed
        request.controller_chooses = ask.unsaid
        for name, count in ask.licences:
            request.licences.add(name=name, count=count)
        if ask.chunks:
            request.chunks.chunks, request.chunks.place = ask.chunks, ask.place


_ENDINGS = {
    "completed": pb.ENDING_COMPLETED,
    "timeout": pb.ENDING_TIMEOUT,
    "cancelled": pb.ENDING_CANCELLED,
    "lost": pb.ENDING_LOST,
}


def _print(message: pb.Job | pb.Node) -> int:
    return zlib.crc32(message.SerializeToString(deterministic=True))
