# SPDX-License-Identifier: Apache-2.0
"""The last check before jobs run, against the newest tables.

Rules
    1. A start is admitted if its job has not changed since the decision (version), every rule of
       `rules.py` holds, each of its nodes may be used, and its chunks fit there.
    2. Admitted starts are booked at once, so that one batch cannot take the same vnode, limit or
       task of an array twice. `withdraw` removes the booking.
    3. Of an array the first task that remains is run.
    4. A job that an operator runs now (`qrun`) needs vnodes that are free, and nothing else.
    5. Exactly the planned nodes are used; on them the chunks may lie differently.
"""

from dataclasses import dataclass, replace

from bridge.errors import BadRequest
from bridge.model import hostlist
from bridge.pbs.decisions.free_vnodes import FreeVnodes, kept_by_reservations
from bridge.pbs.decisions.packing import Parts, pack_chunks
from bridge.pbs.decisions.rules import REQUIRED_TO_RUN_NOW, RuleInput, first_refusal
from bridge.pbs.objects import indices
from bridge.pbs.objects.exec_vnode import format_exec_vnode, parse_exec_vnode, total_by_vnode
from bridge.pbs.objects.jobs import SUSPENDED, Held, PbsJob
from bridge.pbs.objects.limits import Used, add_use
from bridge.pbs.objects.parsed import Parsed, Reader
from bridge.pbs.objects.vnodes import Vnode
from bridge.pbs.orders import Refusal, StartOrder
from bridge.pbs.tables import Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.units import UNLIMITED_S

MAX_NODES = 200_000


@dataclass(frozen=True)
class _Booked:
    job: PbsJob
    held: Held
    index: int


class LastCheck:
    """The last check against one state of the server."""

    def __init__(self, tables: Tables, reader: Reader | None = None) -> None:
        """Reads the tables.

        Args:
            reader: keeps what was read before.
        """
        self.parsed: Parsed = (reader or Reader()).read(tables)
        self._free = FreeVnodes.of(self.parsed)
        self._used: dict[str, Used] = {
            queue: dict(used) for queue, used in self.parsed.used.items()
        }
        self._running = dict(self.parsed.tasks_running)
        self._booked: dict[str, _Booked] = {}
        self._tasks: dict[str, set[int]] = {}

    def admit(self, decision: pb.Decision) -> StartOrder | Refusal:
        """Checks a start, and books it."""
        job = self.parsed.jobs.get(decision.job_id)
        if job is None:
            return Refusal(pb.OUTCOME_STALE, 0, "the job is gone")
        if job.version != decision.job_version:
            return Refusal(pb.OUTCOME_STALE, 0, "the job was changed after the decision")
        start = decision.start
        if refused := first_refusal(self._moment(job, start.time_limit_s)):
            return refused
        if start.host_job_id:
            return Refusal(pb.OUTCOME_INVALID, 0, "jobs of PBS are no guests of others")
        if start.partition and start.partition != job.queue:
            return Refusal(pb.OUTCOME_STALE, 0, f"the job is in queue {job.queue}")
        try:
            vnodes, hint = self._named(start)
        except (ValueError, BadRequest) as error:
            return Refusal(pb.OUTCOME_INVALID, 0, str(error))
        if (wall_s := start.time_limit_s) and not self._allowed(job, wall_s):
            return Refusal(pb.OUTCOME_INVALID, 0, f"{wall_s} s is not a time that the job allows")
        return self._run(job, vnodes, hint, wall_s or None)

    def _named(self, start: pb.Start) -> tuple[list[Vnode], dict[str, float]]:
        """The vnodes of a start, and the planned CPUs of each host."""
        named = self._names(start.nodes)
        if not named or len(named) > MAX_NODES:
            raise BadRequest("the start names no nodes")
        if unknown := [node for node in named if node not in self.parsed.nodes]:
            raise BadRequest(f"there is no node {unknown[0][:80]}")
        members = [self.parsed.vnodes[one] for node in named for one in self.parsed.nodes[node]]
        hint: dict[str, float] = {}
        for use in start.uses:
            for node in self._names(use.nodes):
                if node in self.parsed.nodes:
                    host = self.parsed.vnodes[self.parsed.nodes[node][0]].host
                    hint[host] = hint.get(host, 0.0) + use.cpus
        return members, hint

    def _names(self, written: str) -> list[str]:
        return [written] if written in self.parsed.nodes else hostlist.expand(written)

    @staticmethod
    def _allowed(job: PbsJob, wall_s: int) -> bool:
        longest = job.max_walltime_s or job.walltime_s
        return job.min_walltime_s > 0 and job.min_walltime_s <= wall_s <= (longest or wall_s)

    def run_now(self, job_id: str) -> StartOrder | Refusal:
        """Finds vnodes for a job that an operator runs now (rule 4)."""
        whole = self.parsed.jobs.get(job_id)
        array = whole
        index = -1
        if whole is None and "[" in job_id:
            number, _, rest = job_id.partition("[")
            word, _, server = rest.partition("]")
            array = self.parsed.jobs.get(f"{number}[]{server}")
            index = int(word) if word.isdecimal() and len(word) < 10 else -1
        if array is None:
            return Refusal(pb.OUTCOME_STALE, 0, "the job is gone")
        if refused := first_refusal(self._moment(array), REQUIRED_TO_RUN_NOW):
            return refused
        return self._run(array, list(self.parsed.vnodes.values()), {}, None, index=index)

    def resume(self, job_id: str) -> Refusal | None:
        """Checks whether a suspended job may use its vnodes again, and books them; None: it may."""
        job = self.parsed.jobs.get(job_id)
        if job is None or job.state not in SUSPENDED:
            return Refusal(pb.OUTCOME_STALE, 0, "the job is not suspended")
        if refused := first_refusal(self._moment(job), frozenset(("limits", "queue"))):
            return refused
        try:
            whole = total_by_vnode(
                parse_exec_vnode(
                    text(self.parsed.tables.jobs[job_id], "exec_vnode"), self.parsed.definitions
                )
            )
        except BadRequest as error:
            return Refusal(pb.OUTCOME_REFUSED, 0, str(error))
        own = self.parsed.by_queue.get(job.queue)
        kept = kept_by_reservations(self.parsed, self._free, own, self._end_s(job))
        missing = {
            name: {r: v - job.held.get(name, {}).get(r, 0.0) for r, v in taken.items()}
            for name, taken in whole.items()
        }
        for name, taken in missing.items():
            vnode = self.parsed.vnodes.get(name)
            if vnode is None:
                return Refusal(pb.OUTCOME_REFUSED, 0, f"vnode {name} is gone")
            if why := self._free.closed(vnode, job, own):
                return Refusal(pb.OUTCOME_BUSY, 0, f"vnode {name} {why}")
            for resource, value in taken.items():
                if value > self._free.room(vnode, resource, kept):
                    return Refusal(
                        pb.OUTCOME_BUSY, 0, f"vnode {name} has too little {resource} free"
                    )
        self._book(job, missing, job_id, -1)
        return None

    def withdraw(self, run: StartOrder) -> None:
        """Removes an admitted start that the server refused."""
        booked = self._booked.pop(run.job_id, None)
        if booked is None:
            return
        self._free.release(booked.job, booked.held, run.job_id)
        self._count(booked.job, -1)
        self._tasks.get(booked.job.id, set()).discard(booked.index)

    def _moment(self, job: PbsJob, wall_s: int = 0) -> RuleInput:
        return RuleInput(self.parsed, job, self._used, self._running, wall_s)

    def _end_s(self, job: PbsJob, wall_s: int | None = None) -> int:
        return self.parsed.tables.now_s + (wall_s or job.walltime_s or UNLIMITED_S)

    def _run(
        self, job: PbsJob, vnodes: list[Vnode], hint: dict[str, float], wall_s: int | None,
        index: int = -1,
    ) -> StartOrder | Refusal:  # fmt: skip
        job_id = job.id
        if job.is_array:
            taken = self._tasks.get(job.id, set())
            index = index if index >= 0 else indices.first_without(job.remaining, taken)
            if index < 0 or not any(index in each for each in indices.ranges(job.remaining)):
                return Refusal(pb.OUTCOME_STALE, 0, "no task of the array remains")
            job_id = job.id.replace("[]", f"[{index}]", 1)
        if job_id in self._booked:
            return Refusal(pb.OUTCOME_STALE, 0, "the job is being started")
        own = self.parsed.by_queue.get(job.queue)
        open_, closed = [], ""
        for vnode in vnodes:
            why = self._free.closed(vnode, job, own)
            if why:
                closed = closed or f"vnode {vnode.name} {why}"
            else:
                open_.append(vnode)
        kept = kept_by_reservations(self.parsed, self._free, own, self._end_s(job, wall_s))
        chunks = pack_chunks(job, open_, self._free, kept, hint) if open_ else None
        if chunks is None:
            return Refusal(
                pb.OUTCOME_BUSY, 0, closed or "its chunks do not fit on these vnodes now"
            )
        if refused := self._too_wide(chunks):
            return refused
        try:
            written = format_exec_vnode(chunks, self.parsed.definitions)
        except BadRequest as error:
            return Refusal(pb.OUTCOME_INVALID, 0, str(error))
        self._book(job, total_by_vnode(chunks), job_id, index)
        return StartOrder(job_id, written, wall_s)

    def _too_wide(self, chunks: list[Parts]) -> Refusal | None:
        names = {name for parts in chunks for name, _ in parts}
        alone = [name for name in names if not self.parsed.vnodes[name].multinode]
        if len(names) > 1 and alone:
            return Refusal(
                pb.OUTCOME_REFUSED, 0, f"vnode {alone[0]} accepts no jobs of several vnodes"
            )
        return None

    def _book(self, job: PbsJob, held: Held, job_id: str, index: int) -> None:
        self._free.book(_as_running(job), held, job_id)
        self._booked[job_id] = _Booked(job, held, index)
        self._count(job, 1)
        if index >= 0:
            self._tasks.setdefault(job.id, set()).add(index)

    def _count(self, job: PbsJob, sign: int) -> None:
        for queue in ("", job.queue):
            add_use(self._used.setdefault(queue, {}), job.owner, job.total, sign)
        if job.is_array:
            self._running[job.id] = self._running.get(job.id, 0) + sign


def _as_running(job: PbsJob) -> PbsJob:
    return replace(job, state="R")
