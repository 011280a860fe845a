# SPDX-License-Identifier: Apache-2.0
"""No job that needs more nodes than the model says waits for ever under limits and FreePools."""

from dataclasses import dataclass, field
from random import Random

import pytest

from bridge.model.rules.limits import ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.ports import Conditions
from bridge.rpc.operators.explain import UNKNOWN_HELP, explain
from bridge.rpc.operators.what_if_service import what_if_under
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from schedbridge_contracts.crosses import each
from tests.unit.rpc.test_offers import choosing_cycles
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_job, a_node, a_request

FEATURES = ("start", "choice", "choice_max_nodes")
RETRY_S = 5
BOUND_S = 120
"""By then what could start has: nodes that are in use are tried for 30 s before others are."""
MEMORY_MIB = 100
"""Of a job on each node: a limit on memory limits the number of nodes."""
KEPT = 0
"""The node that a FreePool keeps."""


@dataclass(frozen=True)
class Wanted:
    """A request as Slurm reads it.

    Attributes:
        per_socket: CPUs that it may have on each socket.
        widths: the numbers of nodes that it may have.
    """

    id: str
    user: str
    tasks: int
    task_cpus: int
    per_socket: int
    widths: tuple[int, ...]
    memory_mib: int = MEMORY_MIB

    def message(self):
        request = a_request(
            min_nodes=min(self.widths), max_nodes=max(self.widths), tasks=self.tasks,
            cpus_per_task=self.task_cpus, memory_per_node_mib=self.memory_mib,
            controller_chooses=True,
        )  # fmt: skip
        return a_job(self.id, user=self.user, request=request, time_limit_s=60)


@dataclass
class Controller:
    """A controller that judges the whole request, with nodes that differ in sockets."""

    sockets: list[int]
    cpus: list[int]
    max_cpus: int
    max_nodes: int
    busy: set[int]
    held: dict[str, tuple[Wanted, dict[int, int]]] = field(default_factory=dict)
    tried: list[tuple[str, str, int]] = field(default_factory=list)

    def room(self, wanted, at):
        """Tasks of a job that a node has room for."""
        used = sum(cpus.get(at, 0) for _, cpus in self.held.values())
        free = 0 if at in self.busy else self.cpus[at] - used
        return min(self.sockets[at] * wanted.per_socket, free) // wanted.task_cpus

    def place(self, wanted, among, max_nodes):
        """The CPUs of a job on some of these nodes; None: it has no place there."""
        nodes = sorted(among, key=lambda at: -self.room(wanted, at))
        for width in wanted.widths:
            chosen = nodes[:width]
            room = [self.room(wanted, at) for at in chosen]
            if len(room) < width or width > min(max_nodes, wanted.tasks) or min(room) < 1:
                continue
            if sum(room) >= wanted.tasks:
                return self._spread(wanted, chosen)
        return None

    def _spread(self, wanted, nodes):
        """At least one task on each node."""
        cpus, left = dict.fromkeys(nodes, wanted.task_cpus), wanted.tasks - len(nodes)
        for at in nodes:
            more = min(left, self.room(wanted, at) - 1)
            cpus[at] += more * wanted.task_cpus
            left -= more
        return cpus

    def could_start(self, wanted):
        """Whether there is a place that the rules of the site allow."""
        own = [cpus for job, cpus in self.held.values() if job.user == wanted.user]
        if (
            sum(sum(cpus.values()) for cpus in own) + wanted.tasks * wanted.task_cpus
            > self.max_cpus
        ):
            return False
        left = self.max_nodes - sum(len(cpus) for cpus in own)
        usable = [at for at in range(len(self.cpus)) if at != KEPT]
        return self.place(wanted, usable, left) is not None

    def keeps_the_rules(self):
        """Whether no user has more than the limits allow, and nobody the node that is kept."""
        for user in ("ann", "bob"):
            own = [cpus for job, cpus in self.held.values() if job.user == user]
            if sum(map(len, own)) > self.max_nodes:
                return False
            if sum(sum(cpus.values()) for cpus in own) > self.max_cpus:
                return False
        return all(KEPT not in cpus for _, cpus in self.held.values())

    def carry_out(self, decision, wanted):
        """Carries a start out, and returns its result."""
        start = decision.start
        among = _numbers(start.choice or start.nodes)
        bound = start.max_nodes or len(self.cpus)
        self.tried.append((decision.job_id, start.choice or start.nodes, start.max_nodes))
        if start.nodes and set(wanted.widths).isdisjoint({len(among)}):
            cpus = None
        else:
            cpus = self.place(wanted, among, bound if start.choice else len(among))
        busy = start.choice and (wanted.tasks % 2 or min(wanted.widths) <= bound)  # or never there
        outcome = pb.OUTCOME_BUSY if busy else pb.OUTCOME_REFUSED
        if cpus is not None:
            outcome, self.held[decision.job_id] = pb.OUTCOME_APPLIED, (wanted, cpus)
        return pb.Fate(
            decision_id=decision.id, job_id=decision.job_id, outcome=outcome, code=2014,
            text="Requested nodes are busy",
        )  # fmt: skip


def _numbers(text):
    """The nodes of a list such as `n[0-2,4]`."""
    found = []
    for part in text.strip("n[]").split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _running(wanted, cpus):
    uses = [
        pb.NodeUse(nodes=f"n{at}", cpus=count, memory_mib=wanted.memory_mib)
        for at, count in cpus.items()
    ]
    return pb.Job(
        id=wanted.id, version=1, state=pb.JOB_STATE_RUNNING, user=wanted.user,
        allocation=pb.Allocation(
            start_s=NOW_S, end_s=NOW_S + 90_000, partition="batch", uses=uses
        ),
    )  # fmt: skip


def _site(controller):
    limits = [
        Limit(ConsumerKind.USER, "*", "cpus", Items(controller.max_cpus)),
        Limit(ConsumerKind.USER, "*", "mem_mib", Items(MEMORY_MIB * controller.max_nodes)),
    ]
    pool = FreePool("spare", nodes=NodeSet(names=(f"n{KEPT}",)))
    return Site(Rules(limits=tuple(limits), free_pools=(pool,)))


class _World:
    """A controller, and the service that plans for its jobs."""

    def __init__(self, controller, jobs):
        self.controller, self.site = controller, _site(controller)
        self.cycles = choosing_cycles(self.site, FEATURES, session=Session(retry_s=RETRY_S))
        self.waiting = {job.id: job for job in jobs}
        self.now_s = NOW_S
        names = [f"n{at}" for at in range(len(controller.cpus))]
        nodes = [a_node(name, cpus=cpus) for name, cpus in zip(names, controller.cpus, strict=True)]
        other = Wanted("9", "other", 1, 1, 1, (1,))
        held = {at: controller.cpus[at] for at in controller.busy}
        messages = [*(job.message() for job in jobs), *[_running(other, held)] * bool(held)]
        self.reply = self.cycles.run(a_full(messages, nodes))

    def run(self):
        """Runs until none of the jobs that could start waits, for `BOUND_S` at most."""
        until_s = self.now_s + BOUND_S
        while self.now_s < until_s and any(map(self.controller.could_start, self.waiting.values())):
            self._cycle()

    def end_all(self):
        """Ends all running jobs."""
        ended = [*self.controller.held, *["9"] * bool(self.controller.busy)]
        self.controller.held.clear()
        self.controller.busy.clear()
        self._cycle(ended)

    def _cycle(self, ended=()):
        starts = [d for d in self.reply.decisions if d.WhichOneof("action") == "start"]
        fates = [self.controller.carry_out(d, self.waiting[d.job_id]) for d in starts]
        begun = [job_id for job_id in self.controller.held if self.waiting.pop(job_id, None)]
        self.now_s += 0 if fates else max(self.reply.wake_after_s, 1)
        self.reply = self.cycles.run(
            a_delta(
                self.cycles.session.generation, now_s=self.now_s, removed_jobs=ended, fates=fates,
                jobs=[_running(*self.controller.held[job_id]) for job_id in begun],
            )
        )  # fmt: skip


def _random_job(dice, job_id, user, n_nodes, *, alike):
    """One of any kind; of a fixed number of nodes, or memory on each, only on nodes of one size.

    Of such jobs the planner tries the fewest nodes alone, whatever is free.
    """
    task_cpus = dice.choice((1, 1, 2))
    tasks = dice.randint(1, 6)
    kind = dice.choice(("any", "list", "range", "fixed")) if alike else "any"
    most = min(tasks, n_nodes)
    widths = {
        "any": range(1, tasks + 1),
        "list": sorted({dice.randint(1, most), dice.randint(1, most)}),
        "range": range(dice.randint(1, most), most + 1),
        "fixed": (dice.randint(1, most),),
    }[kind]
    memory_mib = MEMORY_MIB * alike
    return Wanted(job_id, user, tasks, task_cpus, dice.choice((1, 2, 8)), tuple(widths), memory_mib)


@each(seed=range(25))
def test_whatever_the_controller_could_start_alone_starts(seed):
    """Two users, a FreePool, limits on CPUs and nodes; nodes of other sockets and sizes.

    All that runs ends whenever nothing more can start, or nothing more has for a while.
    """
    dice = Random(seed)
    n_nodes = dice.randint(3, 8)
    alike = dice.random() < 0.7
    controller = Controller(
        sockets=[dice.choice((1, 2)) for _ in range(n_nodes)],
        cpus=[4 if alike else dice.choice((4, 8)) for _ in range(n_nodes)],
        max_cpus=dice.choice((6, 12, 99)),
        max_nodes=dice.choice((2, 3, 99)) if alike else 99,
        busy=set(dice.sample(range(n_nodes), dice.randint(0, n_nodes // 2))),
    )
    jobs = [
        _random_job(dice, str(at), ("ann", "bob")[at % 2], n_nodes, alike=alike) for at in range(3)
    ]
    world = _World(controller, jobs)
    while True:
        world.run()
        assert controller.keeps_the_rules(), controller
        if not controller.held and not controller.busy:
            break
        world.end_all()
    late = [job for job in world.waiting.values() if controller.could_start(job)]
    assert not late, controller


@pytest.mark.parametrize("max_nodes", [2, 1])
def test_what_was_refused_and_what_is_next_is_explained(max_nodes):
    """Of two jobs on one free node each needs two, and is allowed so many; no FreePool helps."""
    controller = Controller([1] * 3, [4] * 3, 99, max_nodes, {2})
    jobs = [Wanted(str(at), user, 2, 1, 1, (1, 2)) for at, user in enumerate(("ann", "bob"))]
    world = _World(controller, jobs)
    lines = set()
    for _ in range(4):
        world._cycle()
        answers = (
            explain(world.cycles.published, job.id, what_if_under(Conditions(world.site)))
            for job in jobs
        )
        lines.update(line for answer in answers for line in answer.lines)
    told = "refused on at most 1 node of n[1-2]: Requested nodes are busy; on 2 nodes: "
    assert any(told in line for line in lines), lines
    assert UNKNOWN_HELP in lines
    assert not any("FreePool" in line for line in lines), lines
