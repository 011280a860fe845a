# SPDX-License-Identifier: Apache-2.0
"""System power of simulations: against the nodes that were seen held, and against what was held."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.errors import ConfigError
from bridge.extensions.power.measures import power_measures
from bridge.extensions.power.rules import NO_UPPER_W, NodePower, power_of
from bridge.lab.sim.corridor.power import SENSOR_S, PowerSetting
from bridge.lab.sim.corridor.sight import Sight, under_corridor
from bridge.lab.sim.corridor.steps import parse_corridor
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import Fault, FaultKind, random_faults
from bridge.lab.sim.runs.power_oracle import Configurations, judges
from bridge.lab.sim.workloads.job_power import JobPower, by_application, drawn_around
from bridge.lab.sim.workloads.system import pool_of, read_system
from bridge.model.decisions.resizes import Resizes
from bridge.model.node import CPUS
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import NO_RULES
from bridge.ports import State
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.reshaping import RandomReshape
from schedbridge_contracts.workloads import a_workload, random_workload
from tests.workloads import malleable

NODE = NodePower("node", NodeSet(), idle_w=70, max_w=300)


def draws(*draw_w):
    column = np.array(draw_w, dtype=np.int64)
    return JobPower(column, column, column)


def steps_of(log):
    return list(zip(log.at_s.tolist(), log.power_w.tolist(), strict=True))


class Resizing:
    """Plans by the cycle; at stated instants a resize is put into the plan, unchecked."""

    def __init__(self, at):
        self.at = at

    def __call__(self, snapshot):
        policy = build(PRESETS["easy"])
        plan = run_cycle(snapshot, NO_RULES, State(), policy, np.random.default_rng(0)).plan
        if (rows := self.at.get(snapshot.now_s)) is not None:
            rows = [(job, by_s, np.array(nodes, np.int32), "") for job, nodes, by_s in rows]
            plan = replace(plan, resizes=Resizes.of(rows))
        return plan


def test_starts_and_ends():
    workload = a_workload([(1, 20, 20, 2), (5, 9, 9, 1), (6, 9, 9, 2)], 4)
    setting = PowerSetting(draws(100, 170, 70), NODE)
    log = simulate(workload, pool_of(4), Resizing({}), power=setting).power
    assert steps_of(log) == [(1, 280 + 60), (5, 280 + 160), (14, 280 + 60), (21, 280)]
    assert log.held[2][0].nodes == 2  # it draws no more than idle nodes do


def test_added_nodes_draw_at_once_and_given_back_ones_until_they_are_free():
    workload = malleable(a_workload([(1, 20, 20, 2), (5, 20, 20, 1)], 4))
    decide = Resizing({5: [(0, (0, 1, 3), 7)], 7: [(0, (0,), 9)]})
    setting = PowerSetting(draws(100, 70), NODE)
    log = simulate(workload, pool_of(4), decide, power=setting).power
    nodes = [(each.at_s, each.nodes) for each in log.held[0]]
    assert nodes[:4] == [(1, 2), (5, 3), (7, 3), (9, 1)]
    assert steps_of(log)[:3] == [(1, 340), (5, 370), (9, 310)]


def test_nodes_out_of_service_draw_nothing():
    workload = a_workload([(1, 20, 20, 3)], 4)
    faults = (Fault(5, FaultKind.NODE_LOST, 0), Fault(9, FaultKind.NODE_RETURNED, 0))
    setting = PowerSetting(draws(100), NODE, parse_corridor({"steps": [{"at": 0}], "base": 1000}))
    log = simulate(workload, pool_of(4), Resizing({}), faults=faults, power=setting).power
    assert steps_of(log) == [(1, 1370), (5, 1300), (9, 1370), (25, 1280)]


def test_a_part_of_a_node_draws_that_part(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text("nodes: [{names: 'n[1-2]', cpus: 4}]\n")
    workload = a_workload([(1, 20, 20, 1), (1, 10, 10, 6)], 8)
    setting = PowerSetting(draws(171, 110), NODE)
    outcome = simulate(workload, read_system(path), Resizing({}), power=setting)
    assert steps_of(outcome.power) == [(1, 140 + 25 + 60), (11, 165), (21, 140)]
    assert not judges(outcome)


@pytest.mark.parametrize("seed", range(2))
def test_energy_is_what_the_jobs_held(seed):
    """The engine counts processor seconds on its own."""
    workload = malleable(random_workload(seed, 25, 16))
    rng = np.random.default_rng(seed)
    setting = PowerSetting(draws(*rng.integers(70, 300, len(workload))), NODE)
    policy = replace(build(PRESETS["easy"]), reshape=RandomReshape(seed))
    outcome = simulate(
        workload, pool_of(16), Decider(policy, seed=seed).decide, power=setting,
        faults=[fault for fault in random_faults(seed, workload, 16, 20)
                if fault.kind is not FaultKind.NODE_LOST],
    )  # fmt: skip
    schedule = outcome.schedule
    end_s = int(schedule.end_s[schedule.finished].max())
    found = power_measures(outcome.power.until(end_s))
    idle_j = 70 * 16 * (end_s - int(workload.submit_s[0]))
    assert any(len(held) > 3 for held in outcome.power.held.values())
    assert found.energy_j == idle_j + int((schedule.held_s * (setting.jobs.draw_w - 70)).sum())


@pytest.mark.parametrize("seed", range(2))
def test_power_at_each_decision_is_that_of_the_nodes_that_are_seen_held(seed):
    workload = malleable(random_workload(seed, 25, 16))
    rng = np.random.default_rng(seed)
    setting = PowerSetting(draws(*rng.integers(70, 300, len(workload))), NODE)
    decider = Decider(replace(build(PRESETS["easy"]), reshape=RandomReshape(seed)), seed=seed)
    row_of = {name: row for row, name in enumerate(workload.id.tolist())}
    seen = {}

    def decide(snapshot):
        plan = decider.decide(snapshot)
        running = snapshot.running
        if not len(plan.starts_now) and not len(plan.resizes):
            jobs = [row_of[name] for name in running.id.tolist()]
            drawn = setting.jobs.draw_w[jobs] - 70
            held = np.add.reduceat(running.use[:, CPUS], running.indptr[:-1]) if jobs else 0
            idle_w = 70 * int(snapshot.nodes.usable.sum())
            seen[snapshot.now_s] = idle_w + int((drawn * held).sum())
        return plan

    faults = random_faults(seed, workload, 16, 20)
    log = simulate(workload, pool_of(16), decide, power=setting, faults=faults).power
    known = dict(steps_of(log))
    assert len(seen) > 10
    for now_s, power_w in seen.items():
        assert known[max(at_s for at_s in known if at_s <= now_s)] == power_w


def test_without_power_a_simulation_is_the_same():
    workload = malleable(random_workload(3, 40, 16))
    decide = Decider(build(PRESETS["malleable"])).decide
    without = simulate(workload, pool_of(16), decide)
    decide = Decider(build(PRESETS["malleable"])).decide
    setting = PowerSetting(draws(*[100] * 40), NODE)
    followed = simulate(workload, pool_of(16), decide, power=setting)
    assert without.power is None
    assert followed.power is not None
    assert without.schedule.end_s.tolist() == followed.schedule.end_s.tolist()
    assert len(without.decision_ms) == len(followed.decision_ms)


STEPS = [{"at": 0, "upper": 900}, {"at": 7, "upper": 700}, {"at": 9, "upper": 500}]
STEPS[2]["announced"] = True


@pytest.mark.parametrize(
    ("sight", "seen"),
    [
        (Sight.ANNOUNCED, {1: [900, 500], 8: [900, 700, 500], 10: [900, 700, 500]}),
        (Sight.PRESENT, {1: [900], 8: [900, 700], 10: [900, 700, 500]}),
        (Sight.NOTHING, {1: None, 8: None, 10: None}),
    ],
)
def test_a_policy_sees_what_is_known_of_the_corridor(sight, seen):
    """A change is an event: the jobs that wait are looked at again."""
    workload = a_workload([(1, 50, 50, 4), (2, 50, 50, 4)], 4)
    setting = PowerSetting(draws(100, 100), NODE, parse_corridor(STEPS))
    decider, found = Decider(build(PRESETS["easy"])), {}
    decide = under_corridor(decider, setting, 1, sight)

    def watching(snapshot):
        plan = decide(snapshot)
        power = power_of(decider.site)
        found[snapshot.now_s] = None if power is None else list(power.corridor.upper_w)
        return plan

    simulate(workload, pool_of(4), watching, power=setting)
    known = {at_s: bounds and [NO_UPPER_W, *bounds] for at_s, bounds in seen.items()}
    assert {at_s: found[at_s] for at_s in known} == known


def test_what_jobs_draw_differs_from_their_model_by_the_error_at_most():
    model_w = np.full(2000, 170.0)
    found = drawn_around(model_w, NODE, error=0.1, seed=4)
    assert (found.min_w.min(), found.max_w.max()) == (153, 188)
    assert (found.draw_w.min(), found.draw_w.max()) == (153, 187)
    again, other = (drawn_around(model_w, NODE, error=0.1, seed=seed) for seed in (4, 5))
    assert found.draw_w.tolist() == again.draw_w.tolist() != other.draw_w.tolist()
    assert (drawn_around(model_w, NODE, error=0, seed=4).draw_w == 170).all()
    assert (drawn_around(np.array([10.0]), NODE, error=0, seed=4).draw_w == 70).all()
    with pytest.raises(ConfigError):
        drawn_around(model_w, NODE, error=1.5, seed=0)


def test_jobs_of_one_application_have_one_model():
    executable = np.array([3, 3, -1, -1, -1, 4] * 50)
    user = np.array([1, 2, 3, 3, 4, 1] * 50)
    exact = by_application(executable, user, NODE, error=0, seed=1).draw_w.reshape(50, 6)
    assert (exact == exact[0]).all()
    assert exact[0, 0] == exact[0, 1]
    assert exact[0, 2] == exact[0, 3]
    assert len(set(exact[0].tolist())) == 4
    wrong = by_application(executable, user, NODE, error=0.1, seed=1)
    assert wrong.max_w.max() <= NODE.max_w
    assert ((wrong.min_w <= wrong.draw_w) & (wrong.draw_w <= wrong.max_w)).all()


def test_sensors_report_a_while_after_the_start():
    jobs = draws(200, 100)
    workload = replace(a_workload([(1, 50, 50, 2), (2, 9, 9, 4)], 4), power=jobs)
    setting = PowerSetting(jobs, NODE, sensors=True)
    decider, shown = Decider(build(PRESETS["easy"])), {}

    def decide(snapshot):
        shown[snapshot.now_s] = snapshot.running
        return decider.decide(snapshot)

    simulate(workload, pool_of(4), decide, power=setting)
    assert 1 + SENSOR_S in shown
    assert not shown[2].measured_max_power_w.any()
    seen = shown[1 + SENSOR_S]
    low_w, high_w = int(seen.measured_min_power_w[0]), int(seen.measured_max_power_w[0])
    assert 195 <= low_w < 200 < high_w <= 205
    assert (seen.min_power_w[0], seen.max_power_w[0]) == (200, 200)


def test_a_violation_is_avoidable_if_a_configuration_was_there():
    """Two rigid jobs exceed a bound that changes while they run; one of them started after it."""
    jobs = [(1, 50, 50, 2), (2, 50, 50, 1), (8, 20, 20, 1)]
    workload, setting = a_workload(jobs, 4), draws(170, 170, 170)

    def exists(steps, workload=workload):
        power = PowerSetting(setting, NODE, parse_corridor(steps))
        outcome = simulate(workload, pool_of(4), Resizing({}), power=power)
        assert judges(outcome)
        known = Configurations.of(outcome, outcome.power)
        return [known.exists(10, lower, upper) for lower, upper in
                [(0, 679), (0, 580), (0, 579), (580, 679), (581, 679), (680, 680)]]  # fmt: skip

    late = [{"at": 0}, {"at": 5, "upper": 579}]
    assert exists(late) == [True, True, False, True, False, True]
    assert all(exists([{"at": 0, "upper": 579}])[:4])  # nothing had to start
    early = [{"at": 0}, {"at": 5, "upper": 579, "announced": True}]
    assert exists(early)[2] is True
    shrinking = exists(late, malleable(workload, 1, 4))
    assert shrinking == [True, True, True, True, False, True]
