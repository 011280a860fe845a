# SPDX-License-Identifier: Apache-2.0
"""What a report of a change costs while many jobs wait, in steps: lines of Python that it executes.

How many milliseconds these take is measured by `benchmarks/cycle_cost.py`.
"""

import sys

from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from tests.unit.rpc import worlds

MAX_STEPS = 2000
FEW, MANY = 100, 400
WAITING = {"acquire", "join", "poll", "recv", "select", "sleep", "wait"}


def some_jobs(numbers):
    """Jobs of one to three nodes and of unlike limits."""
    return [
        worlds.a_job(
            str(number),
            request=worlds.a_request(min_nodes=1 + number % 3, max_nodes=1 + number % 3),
            time_limit_s=60 * (1 + number % 50),
        )
        for number in numbers
    ]


def counted(cycles, report):
    """The lines that a report executes in the product, and the functions of C that it calls."""
    steps, called = 0, set()

    def trace(frame, event, _):
        nonlocal steps
        if "/bridge/" not in frame.f_code.co_filename:
            return None
        steps += event == "line"
        return trace

    def note(_, event, function):
        if event == "c_call":
            called.add(function.__name__)

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(note)
    try:
        cycles.run(report)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return steps, called


def a_change(preset, waiting):
    """Reports another job to a service that knows as many."""
    cycles = worlds.some_cycles(Decider(build(PRESETS[preset])).decide, preset)
    cycles.run(worlds.a_full(some_jobs(range(waiting)), nodes=worlds.some_nodes(8)))
    return counted(cycles, worlds.a_delta(1, jobs=some_jobs([waiting])))


@each(preset=["easy", "conservative", "slurm-like"])
def test_the_steps_of_a_change_do_not_grow_with_the_queue(preset):
    a_change(preset, FEW)  # what a process does once
    (few, _), (many, called) = a_change(preset, FEW), a_change(preset, MANY)
    assert 0 < few <= many <= min(1.05 * few, MAX_STEPS)
    assert not called & WAITING
