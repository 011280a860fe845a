# SPDX-License-Identifier: Apache-2.0
"""The solver's process: what it tells, and what happens when it overruns or dies."""

import os
import signal
import threading
import time

import pytest
from ortools.sat.python.cp_model import CpModel

from bridge.model.decisions.answer import CRASH, INFEASIBLE, STARTING, TIMEOUT
from bridge.ports import SolverRequest
from bridge.solver_process import ChildSolver

START_S = 60
"""A process that imports OR-Tools is up by then, on any machine."""


@pytest.fixture
def solver():
    made = ChildSolver()
    warm(made)
    yield made
    made.close()


def warm(solver):
    solver.warm_up()
    assert solver._child.wait_ready(time.monotonic() + START_S)


def small():
    model = CpModel()
    x = model.new_int_var(0, 10, "x")
    model.add(x >= 3)
    model.minimize(x)
    return model


def endless(n=40):
    """Solutions come at once, the proof never: jobs of many lengths on few machines."""
    model = CpModel()
    starts, intervals = [], []
    for i in range(n):
        start = model.new_int_var(0, 5000, "")
        intervals.append(model.new_fixed_size_interval_var(start, 50 + 37 * i % 101, ""))
        model.add_hint(start, 200 * i)
        starts.append(start)
    model.add_cumulative(intervals, [1 + i % 3 for i in range(n)], 4)
    model.minimize(sum((1 + 7 * i % 11) * start for i, start in enumerate(starts)))
    return model


def nasty():
    """CP-SAT does not look at its clock while it unfolds so long an automaton."""
    model = CpModel()
    steps = [model.new_int_var(0, 50, "") for _ in range(1200)]
    arcs = [(a, step, (3 * a + step) % 40) for a in range(40) for step in range(51)]
    model.add_automaton(steps, 0, [0, 1, 2], arcs)
    model.minimize(sum(steps))
    return model


def test_what_is_optimal_is_proved(solver):
    answer = solver.solve(SolverRequest(small(), 10.0, 0.0, 1))
    assert answer.proved
    assert answer.values.tolist() == [3]
    assert (answer.objective, answer.bound) == (3.0, 3.0)


def test_what_cannot_be_is_said(solver):
    model = small()
    model.add(model.get_int_var_from_proto_index(0) <= 2)
    assert solver.solve(SolverRequest(model, 10.0, 0.0, 1)).problem == INFEASIBLE


def test_effort_gives_the_same_here_and_there(solver):
    model = endless()
    there = solver.solve(SolverRequest(model, 60.0, 0.05, 7))
    here = ChildSolver().solve(SolverRequest(model, 0.0, 0.05, 7))
    assert there.values.tolist() == here.values.tolist()


def test_one_process_serves_many_models(solver):
    process = solver._child.process.pid
    for _ in range(3):
        assert solver.solve(SolverRequest(small(), 10.0, 0.0, 1)).proved
    assert solver._child.process.pid == process


def test_who_does_not_look_at_the_clock_is_ended(solver):
    """As in presolve, in which CP-SAT may not ask for minutes how late it is."""
    process = solver._child.process
    process.send_signal(signal.SIGSTOP)
    answer = solver.solve(SolverRequest(nasty(), 0.5, 0.0, 1))
    assert answer.problem == TIMEOUT
    assert (answer.killed, solver.killed) == (True, 1)
    assert process.wait(60) == -signal.SIGKILL
    warm(solver)
    assert solver.solve(SolverRequest(small(), 10.0, 0.0, 1)).proved  # another process serves


def test_what_was_told_before_the_end_serves(solver):
    process = solver._child.process.pid
    threading.Timer(1.0, os.kill, (process, signal.SIGSTOP)).start()
    answer = solver.solve(SolverRequest(endless(), 3.0, 0.0, 1))
    assert answer.killed
    assert answer.values is not None
    assert 0 <= answer.bound <= answer.objective
    assert solver._child.process.pid != process


def test_a_process_that_dies_is_replaced(solver):
    process = solver._child.process.pid
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    answer = solver.solve(SolverRequest(nasty(), 5.0, 0.0, 1))
    assert answer.problem == CRASH
    assert not answer.killed
    warm(solver)
    assert solver.solve(SolverRequest(small(), 10.0, 0.0, 1)).proved


def test_a_process_that_died_between_two_models_is_replaced(solver):
    process = solver._child.process.pid
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert solver.solve(SolverRequest(small(), 5.0, 0.0, 1)).problem == CRASH
    warm(solver)
    assert solver.solve(SolverRequest(small(), 10.0, 0.0, 1)).proved


def test_a_process_that_is_not_ready_is_not_waited_for_beyond_the_budget():
    solver = ChildSolver()
    late = solver.solve(SolverRequest(small(), 0.05, 0.0, 1))
    assert late.problem == STARTING  # and not the answer to a later one
    solver.close()


def test_who_has_time_waits_until_it_is_ready():
    solver = ChildSolver()
    solver.wait_ready(0.0)  # nothing was started: nothing to wait for
    assert solver.solve(SolverRequest(small(), 0.05, 0.0, 1)).problem == STARTING
    solver.wait_ready(60.0)
    assert solver.solve(SolverRequest(small(), 10.0, 0.0, 1)).proved
    solver.close()


def test_closing_leaves_no_process(solver):
    solver.solve(SolverRequest(nasty(), 0.2, 0.0, 1))
    solver.warm_up()
    processes = [one.process for one in (solver._child, solver._spare) if one is not None]
    assert processes
    solver.close()
    assert all(process.poll() is not None for process in processes)


def test_the_process_ends_with_its_pipe(solver):
    process = solver._child.process
    process.stdin.close()
    assert process.wait(timeout=START_S) == 0
