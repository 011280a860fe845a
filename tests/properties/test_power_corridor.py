# SPDX-License-Identifier: Apache-2.0
"""No violation of the corridor remains that some configuration could have ended."""

import itertools

import numpy as np
import pytest

from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.cycles import Memory, run

NODES, IDLE_W = 8, 71
PRESETS = ("malleable-power", "power-plan")


def drawn_w(jobs, widths):
    idle = NODES - sum(widths)
    assert idle >= 0
    return idle * IDLE_W + sum(w * job["watts"] for w, job in zip(widths, jobs, strict=True))


def a_case(seed):
    rng = np.random.default_rng(seed)
    running, left = [], NODES
    for name in range(int(rng.integers(1, 5))):
        width = int(rng.integers(1, 4))
        if width > left:
            break
        rigid = rng.random() < 0.3
        minimum = int(rng.integers(1, width + 1))
        running.append({
            "id": f"r{name}", "width": width, "watts": int(rng.integers(90, 251)),
            "allowed": (width,) if rigid else range(minimum, int(rng.integers(width, 9)) + 1),
        })  # fmt: skip
        left -= width
    waiting = [
        {"id": f"w{name}", "width": int(rng.integers(1, 5)), "watts": int(rng.integers(90, 251))}
        for name in range(int(rng.integers(0, 3)))
    ]
    lower_w = int(rng.integers(0, 1700))
    return running, waiting, (lower_w, lower_w + int(rng.integers(50, 700)))


def a_world(running, waiting, now_s):
    """The world in which these jobs hold nodes one after the other."""
    first, held = 0, []
    for job in running:
        power = {"min_power_w": job["watts"], "max_power_w": job["watts"], "id": job["id"],
                 "resized_s": job.get("resized_s", 0)}  # fmt: skip
        bounds = (job["allowed"][0], job["allowed"][-1]) if len(job["allowed"]) > 1 else (0, 0)
        nodes = tuple(range(first, first + job["width"]))
        held.append(a_running_job(nodes, end_s=100_000, min_nodes=bounds[0], max_nodes=bounds[1],
                                  **power))  # fmt: skip
        first += job["width"]
    requested = [a_job(nodes=job["width"], limit_s=50_000, id=job["id"], min_power_w=job["watts"],
                   max_power_w=job["watts"]) for job in waiting]  # fmt: skip
    return a_snapshot(nodes=NODES, running=held, jobs=requested, now_s=now_s)()


def a_round(running, waiting, world, plan):
    """Both lists when the plan has been carried out."""
    ids = world.running.id[plan.resizes.job].tolist()
    after = {name: len(plan.resizes.nodes_of(at)) for at, name in enumerate(ids)}
    running = [
        {**job, "width": after[job["id"]], "resized_s": world.now_s} if job["id"] in after else job
        for job in running
    ]
    started = world.jobs.id[plan.job[plan.starts_now]].tolist()
    running += [{**job, "allowed": (job["width"],)} for job in waiting if job["id"] in started]
    return running, [job for job in waiting if job["id"] not in started]


def ended_by_some(running, waiting, bounds_w):
    """Whether widths of the running jobs, alone or beside one or two waiting jobs, would do."""
    for count in range(3):
        for starts in itertools.combinations(waiting, count):
            every = [*running, *starts]
            options = [*(job["allowed"] for job in running), *((job["width"],) for job in starts)]
            for widths in itertools.product(*options):
                if sum(widths) > NODES:
                    continue
                if bounds_w[0] <= drawn_w(every, widths) <= bounds_w[1]:
                    return True
    return False


@pytest.mark.parametrize("preset", PRESETS)
@each(seed=seeds(50, whole=150))
def test_a_violation_that_some_configuration_ends_is_ended(preset, seed):
    running, waiting, bounds_w = a_case(seed)
    rules = PowerRules(Corridor((0,), bounds_w[:1], bounds_w[1:]),
                       (NodePower("node", NodeSet(), IDLE_W, 250),))  # fmt: skip
    policy, memory = build(parse_policy(preset)), Memory()
    possible = ended_by_some(running, waiting, bounds_w)
    for step in range(6):
        world = a_world(running, waiting, 1000 + 10 * step)
        plan = run(world, memory, policy, site=with_power(Site(), rules))
        running, waiting = a_round(running, waiting, world, plan)
    now_w = drawn_w(running, [job["width"] for job in running])
    assert now_w <= bounds_w[1] or not possible
    assert bounds_w[0] <= now_w or not possible
    if not possible and not bounds_w[0] <= now_w <= bounds_w[1]:
        assert plan.notes, "it must say so"


@each(seed=range(100))
def test_a_bound_that_some_widths_keep_holds_at_its_first_second(seed):
    running, _, bounds_w = a_case(seed)
    upper_w, comes_s = bounds_w[1], 2000
    corridor = Corridor((0, comes_s), (0, 0), (100_000, upper_w))
    rules = PowerRules(corridor, (NodePower("node", NodeSet(), IDLE_W, 250),))
    policy, memory = build(parse_policy("power-plan")), Memory()
    possible = ended_by_some(running, [], (0, upper_w))
    for now_s in (comes_s - 10, comes_s - 5):
        world = a_world(running, [], now_s)
        plan = run(world, memory, policy, site=with_power(Site(), rules))
        running, _ = a_round(running, [], world, plan)
    first_w = drawn_w(running, [job["width"] for job in running])
    assert first_w <= upper_w or not possible


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("watts", "width"), [(120, 2), (150, 3), (200, 2), (250, 3)])
def test_two_waiting_jobs_start_together_where_one_is_not_enough(preset, watts, width):
    running = [{"id": "m", "width": NODES, "watts": 90, "allowed": range(1, NODES + 1)}]
    waiting = [{"id": name, "width": width, "watts": watts} for name in ("a", "b")]
    min_w = drawn_w([*running, *waiting], [NODES - 2 * width, width, width])
    bounds_w = (min_w, min_w + 300)
    assert not ended_by_some(running, waiting[:1], bounds_w)
    rules = PowerRules(Corridor((0,), bounds_w[:1], bounds_w[1:]),
                       (NodePower("node", NodeSet(), IDLE_W, 250),))  # fmt: skip
    policy, memory = build(parse_policy(preset)), Memory()
    for now_s in (1000, 1010):
        world = a_world(running, waiting, now_s)
        plan = run(world, memory, policy, site=with_power(Site(), rules))
        running, waiting = a_round(running, waiting, world, plan)
    assert waiting == []
