# SPDX-License-Identifier: Apache-2.0
"""Guests in the simulator: a random policy places them, and no capacity is forged."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import having_shared, requeues
from bridge.extensions.sharing.quotas import Quotas
from bridge.extensions.sharing.rules import Coschedule
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import Fault, FaultKind
from bridge.lab.sim.runs.sharing_measures import sharing_measures
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.sharing.interference import Application, Interference, UseStage
from bridge.lab.sim.sharing.setting import Sharing, sharing_of
from bridge.lab.sim.workloads.requests import requests
from bridge.lab.sim.workloads.system import System, pool_of
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job_columns import objects
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Decide
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.workloads import a_workload, random_workload

PROCESSORS = 16
QUIET = Interference(
    (
        Application("busy", (UseStage("all", 1, True, 1.0),)),
        Application("idle", (UseStage("all", 1, True, 0.25),)),
        Application("steps", (UseStage("a", 0.5, True, 0.75), UseStage("b", 0.5, False, 0.5))),
    )
)
NOISY = Interference(tuple(replace(a, pressure=0.5, sensitivity=0.5) for a in QUIET.applications))


def crowd(seed: int, n_jobs: int) -> Workload:
    """Jobs of few sizes, more than the machine can take."""
    rng = np.random.default_rng((seed, 7))
    limit_s = rng.integers(20, 400, n_jobs)
    columns = (
        1 + np.cumsum(rng.integers(0, 40, n_jobs)),
        np.maximum(1, (limit_s * rng.random(n_jobs)).astype(np.int64)),
        limit_s,
        rng.choice([2, 4, 8], n_jobs),
    )
    return a_workload(np.column_stack(columns).tolist(), PROCESSORS)


def shared_pool() -> System:
    return pool_of(PROCESSORS).with_shared_nodes()


def shared(workload: Workload, model: Interference, seed: int = 0) -> Workload:
    rng = np.random.default_rng((seed, 5))
    kinds = [Coschedule.HOST, Coschedule.GUEST, Coschedule.BOTH, Coschedule.NEVER]
    consent = rng.choice(kinds, len(workload), p=[0.1, 0.1, 0.7, 0.1]).astype(np.int8)
    application = rng.integers(0, len(model.applications), len(workload))
    setting = Sharing(model, application, consent)
    return replace(workload, sharing=setting)


class RandomGuests:
    """Plans by EASY, then starts jobs that wait as guests of any host that they fit, at random.

    It looks at each snapshot as well: what the controller shows must be possible.
    """

    def __init__(self, seed: int, *, quotas: bool = True, requeue: float = 0.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.easy = Decider(build(PRESETS["easy"]))
        self.quotas, self.requeue = quotas, requeue
        self.guests = self.requeued = self.most_guests = 0

    def decide(self, snapshot: Snapshot) -> Plan:
        self.look(snapshot)
        plan = self.easy.decide(snapshot)
        running, jobs = snapshot.running, snapshot.jobs
        known = pairs(running)
        taken = np.zeros(len(snapshot.nodes), dtype=bool)
        for guest in known:
            taken[running.nodes[running.indptr[guest] : running.indptr[guest + 1]]] = True
        free = [
            row
            for row in range(len(running))
            if row not in known and running.coschedule[row] in (Coschedule.HOST, Coschedule.BOTH)
        ]
        nodes_of = [plan.nodes_of(row) for row in range(len(plan))]
        start_s, end_s = plan.start_s.copy(), plan.end_s.copy()
        reasons, partition = list(plan.reasons), plan.partition.copy()
        host_id = np.full(len(plan), "", dtype=object)
        for row in np.flatnonzero(plan.start_s != plan.now_s).tolist():
            job = int(plan.job[row])
            for host in free:
                nodes = running.nodes[running.indptr[host] : running.indptr[host + 1]]
                nodes, width = nodes[~taken[nodes]], int(jobs.min_nodes[job])
                if (
                    jobs.coschedule[job] in (Coschedule.GUEST, Coschedule.BOTH)
                    and width <= len(nodes)
                    and self.rng.random() < 0.7
                ):
                    nodes = np.sort(self.rng.permutation(nodes)[:width])
                    taken[nodes] = True
                    nodes_of[row], host_id[row] = nodes, running.id[host]
                    start_s[row], reasons[row], partition[row] = plan.now_s, None, 0
                    end_s[row] = plan.now_s + jobs.time_limit_s[job]
                    self.guests += 1
                    break
        leaving = [running.id[row] for row in known if self.rng.random() < self.requeue]
        self.requeued += len(leaving)
        planned = replace(
            plan,
            start_s=start_s, end_s=end_s, partition=partition, reasons=tuple(reasons),
            indptr=np.concatenate(([0], np.cumsum([len(n) for n in nodes_of]))).astype(np.int64),
            nodes=np.concatenate([*nodes_of, plan.nodes[:0]]),
            tasks=np.zeros(sum(map(len, nodes_of)), np.int32),
        )  # fmt: skip
        return having_shared(
            planned,
            host_id=host_id if host_id.any() else None,
            quotas=self._limits(running.id[list(known)].tolist()),
            requeues=requeues([(job_id, "by chance") for job_id in leaving]),
        )

    def _limits(self, guests: Sequence[str]) -> Quotas:
        milli = self.rng.choice([0, 100, 250, 500], len(guests)).astype(np.int64)
        weight = self.rng.choice([1, 100], len(guests)).astype(np.int64)
        return Quotas(objects(guests), milli, weight) if self.quotas else Quotas()

    def look(self, snapshot: Snapshot) -> None:
        """Nobody holds more than there is; at most two jobs are on a node, and those are a pair."""
        running = snapshot.running
        held = np.zeros_like(snapshot.nodes.capacity)
        np.add.at(held, running.nodes, running.use)
        assert (held <= snapshot.nodes.capacity).all()
        on = np.bincount(running.nodes, minlength=len(snapshot.nodes))
        assert on.max(initial=0) <= 2
        found = pairs(running)
        assert not set(found.values()) & set(found)
        for guest, host in found.items():
            span = [
                running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist()
                for row in (guest, host)
            ]
            assert set(span[0]) <= set(span[1])
        width = np.diff(running.indptr)
        assert (running.busy_cpus <= width + 1e-9).all()
        for host in set(found.values()):
            group = [host, *(guest for guest, of in found.items() if of == host)]
            self.most_guests = max(self.most_guests, len(group) - 1)
            assert running.busy_cpus[group].sum() <= width[host] + 1e-9


def run(workload: Workload, policy: RandomGuests, **more: object) -> SimulationResult:
    return simulate(workload, shared_pool(), policy.decide, **more)  # type: ignore[arg-type]


@each(seed=seeds(4, whole=12))
def test_no_capacity_is_forged_and_all_work_is_done(seed: int) -> None:
    """Slow: 120 jobs become guests at random, and every snapshot is looked at."""
    model = QUIET if seed % 2 else NOISY
    workload = shared(crowd(seed, 120), model, seed)
    policy = RandomGuests(seed)
    outcome = run(workload, policy)
    log, schedule = outcome.sharing, outcome.schedule
    assert log is not None
    assert policy.guests > 20
    assert policy.most_guests > 1
    assert not outcome.refusals
    assert (schedule.end_s != NEVER).all()
    ran_s = schedule.end_s - schedule.start_s
    late_s = ran_s - workload.runtime_s
    assert (late_s >= 0).all()
    assert np.abs(late_s - log.lost_s).max() < 1.01  # an end falls on a whole second
    assert (late_s[log.shared_s == 0] == 0).all()
    assert (late_s > 0).any()
    span_s = schedule.end_s.max() - schedule.submit_s.min()
    assert log.cpu_s.sum() <= PROCESSORS * span_s
    assert schedule.held_s is not None
    assert schedule.held_s.sum() <= PROCESSORS * span_s


@pytest.mark.parametrize("seed", range(3))
def test_work_takes_the_same_cpu_time_whoever_shares(seed: int) -> None:
    """No CPU time is lost or found."""
    model = QUIET if seed else NOISY
    workload = shared(crowd(seed, 80), model, seed)
    assert workload.sharing is not None
    log = run(workload, RandomGuests(seed)).sharing
    assert log is not None
    for job, kind in enumerate(workload.sharing.application.tolist()):
        stages = QUIET.applications[kind].stages
        busy = sum(stage.share * stage.busy(int(workload.processors[job])) for stage in stages)
        assert log.cpu_s[job] == pytest.approx(busy * workload.runtime_s[job], abs=1e-3)


@pytest.mark.parametrize("consents", [False, True])
def test_without_guests_the_schedule_is_the_same_to_the_bit(consents: bool) -> None:
    """Whether nobody consents, or the policy lets none share."""
    workload = shared(random_workload(3, 200, PROCESSORS), NOISY)
    assert workload.sharing is not None
    if not consents:
        nobody = np.full(200, Coschedule.NEVER, dtype=np.int8)
        workload = replace(workload, sharing=replace(workload.sharing, coschedule=nobody))
    requested = requests(workload, shared_pool())
    alone = replace(workload, sharing=None, requests=requested)
    policies = (Decider(build(PRESETS["easy"])), RandomGuests(0))
    plain = simulate(alone, shared_pool(), Decider(build(PRESETS["easy"])).decide)
    may = simulate(workload, shared_pool(), policies[not consents].decide)
    assert may.schedule.start_s.tobytes() == plain.schedule.start_s.tobytes()
    assert may.schedule.end_s.tobytes() == plain.schedule.end_s.tobytes()
    assert may.nodes.tobytes() == plain.nodes.tobytes()


def test_requeued_guests_start_from_the_beginning() -> None:
    workload = shared(crowd(1, 120), QUIET, 1)
    policy = RandomGuests(1, requeue=0.2)
    outcome = run(workload, policy)
    log = outcome.sharing
    assert log is not None
    assert policy.requeued == log.requeued.sum() == outcome.restarts.sum() > 3
    assert (outcome.schedule.end_s != NEVER).all()
    ran_s = outcome.schedule.end_s - outcome.schedule.start_s
    assert (ran_s >= workload.runtime_s).all()


def test_a_node_that_is_lost_takes_host_and_guest_with_it() -> None:
    workload = shared(crowd(2, 60), QUIET, 2)
    faults = [
        fault
        for node in range(0, PROCESSORS, 3)
        for fault in (
            Fault(300 + 40 * node, FaultKind.NODE_LOST, node),
            Fault(320 + 40 * node, FaultKind.NODE_RETURNED, node),
        )
    ]
    outcome = run(workload, RandomGuests(2), faults=faults)
    assert (outcome.schedule.end_s != NEVER).all()
    assert outcome.restarts.sum() > 0


def lengthening(decide: Decide) -> Decide:
    """Plans like `decide`, and lengthens limits of hosts by all of their time with guests."""

    def decided(snapshot: Snapshot) -> Plan:
        running, plan = snapshot.running, decide(snapshot)
        rows = np.flatnonzero(running.extendable & (running.hosted_s > 0)).tolist()
        owed = {str(running.id[row]): int(running.hosted_s[row]) for row in rows}
        plan = having_shared(plan, extensions=Extensions.of(owed))
        return replace(plan, again_s=snapshot.now_s + 10)

    return decided


@pytest.mark.parametrize(
    ("grace_s", "lengthens", "end_s", "killed", "late"),
    [
        (None, False, [191, 201], [False, False], (1.0, 1.0)),
        (None, True, [191, 201], [False, False], (1.0, 0.0)),
        # Killed for what its guest has cost it.
        (0, False, [101, 111], [True, True], (0.0, 0.0)),
        # The guest has done half of its work at its limit; then the host is alone.
        (0, True, [151, 111], [False, True], (0.5, 0.0)),
        (50, False, [151, 161], [True, True], (1.0, 1.0)),
        (50, True, [176, 161], [False, True], (1.0, 0.0)),
    ],
)
def test_killed_after_limit_and_grace_but_not_where_the_limit_is_lengthened(
    grace_s: int | None, lengthens: bool, end_s: list[int], killed: list[bool], late: object
) -> None:
    """Host and guest run together from 10 s on, each at half its speed."""
    everybody = np.full(2, Coschedule.BOTH, dtype=np.int8)
    jobs = [(1, 100, 100, PROCESSORS), (11, 100, 100, PROCESSORS)]
    setting = Sharing(QUIET, np.zeros(2, dtype=np.int64), everybody, grace_s)
    workload = replace(a_workload(jobs, PROCESSORS), sharing=setting)
    policy = RandomGuests(0, quotas=False)
    policy.rng = np.random.default_rng(1)
    decide = lengthening(policy.decide) if lengthens else policy.decide
    outcome = simulate(workload, shared_pool(), decide)
    log = outcome.sharing
    assert log is not None
    assert log.host.tolist() == [-1, 0]
    assert outcome.schedule.end_s.tolist() == end_s
    assert log.killed.tolist() == killed
    found = sharing_measures(outcome)
    assert (found["overrun"], found["hosts_overrun"]) == late
    assert (found["extended"] > 0) == lengthens
    assert not log.extended_s[1]
    assert log.extended_s[0] <= log.shared_s[0] + 60


def test_a_policy_that_watches_guests_is_asked_as_often_as_it_wants() -> None:
    """However long nothing changes: a host's harm would be seen minutes later otherwise."""
    everybody = np.full(2, Coschedule.BOTH, dtype=np.int8)
    jobs = [(1, 3000, 3000, PROCESSORS), (11, 3000, 3000, PROCESSORS)]
    setting = Sharing(QUIET, np.zeros(2, dtype=np.int64), everybody)
    workload = replace(a_workload(jobs, PROCESSORS), sharing=setting)
    policy, watched_s = RandomGuests(0, quotas=False), []
    policy.rng = np.random.default_rng(1)

    def decide(snapshot: Snapshot) -> Plan:
        if pairs(snapshot.running):
            watched_s.append(snapshot.now_s)
        return replace(policy.decide(snapshot), again_s=snapshot.now_s + 5)

    outcome = simulate(workload, shared_pool(), decide)
    assert outcome.sharing is not None
    assert outcome.sharing.host.tolist() == [-1, 0]
    assert watched_s[0] == outcome.schedule.start_s[1] + 5
    assert set(np.diff(watched_s).tolist()) == {5}
    assert watched_s[-1] + 5 >= outcome.schedule.end_s.min()


def test_consent_is_drawn_by_the_seed_and_applications_stay_together() -> None:
    executable = np.arange(1000) % 10
    user = np.zeros(1000, dtype=np.int64)
    found = sharing_of(QUIET, executable, user, consent_percent=30, seed=1)
    assert 0.25 < (found.coschedule == Coschedule.BOTH).mean() < 0.35
    for number in range(10):
        assert len(set(found.application[executable == number].tolist())) == 1
    assert len(set(found.application.tolist())) > 1


@pytest.mark.parametrize("preset", ["static-half", "asax", "pairs"])
def test_policies_make_legal_plans_that_the_controller_accepts(preset: str) -> None:
    """The decider checks every plan; `look` checks what the controller shows."""
    workload = shared(crowd(5, 80), NOISY, 5)
    site = parse_site({"coscheduling": [{"partition": "*", "scope": "all"}]})
    decider = Decider(build(PRESETS[preset]), site=site)
    witness = RandomGuests(0)

    def decide(snapshot: Snapshot) -> Plan:
        witness.look(snapshot)
        return decider.decide(snapshot)

    outcome = simulate(workload, shared_pool(), decide)
    log = outcome.sharing
    assert log is not None
    assert not outcome.refusals
    assert decider.failures == 0
    assert (outcome.schedule.end_s != NEVER).all()
    assert (log.host >= 0).any() or log.requeued.any()
    assert (log.cpu_s > 0).all()
