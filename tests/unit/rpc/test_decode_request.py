# SPDX-License-Identifier: Apache-2.0
"""Requests lowered to columns: what Slurm's options mean on a node."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_request import lower
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.table_columns import TableColumns
from schedbridge_contracts.crosses import each

NODES = NodeIndex([f"n{index}" for index in range(8)])


def a_layout(threads=1, exclusive=False, memory=True, optional=True, mixed=False, **settings):
    column = {"gpu": 2, "gpu:a100": 3}
    return TableColumns(
        nodes=NODES,
        resources=("cpus", "mem_mib", "gpu", "gpu:a100"),
        column=column,
        memory_mib=np.array([1000] * 6 + [4000] * 2),
        partitions={"batch": 0, "whole": 1},
        partition_exclusive=(exclusive, True),
        partition_threads=(threads, threads),
        partition_mixed=(mixed, False),
        reservations={"maint": 0, "other": 1},
        licences={"matlab": 0, "ansys": 1},
        memory_consumable=memory,
        memory_optional=optional,
        **settings,
    )


def ask(layout=None, **settings):
    request = pb.Request(**({"partitions": ["batch"]} | settings))
    return lower(request, layout or a_layout())


# name: (options, threads per core, (nodes, tasks, CPUs per node, CPUs per task, tasks on a node))
SHAPES = {
    "nothing at all": ({}, 1, ((1, 1), 0, 1, 0, 0)),
    "-N4": ({"min_nodes": 4, "max_nodes": 4}, 1, ((4, 4), 0, 1, 0, 0)),
    "-N4 -c2": ({"min_nodes": 4, "max_nodes": 4, "cpus_per_task": 2}, 1, ((4, 4), 0, 2, 0, 0)),
    "-N2-4": ({"min_nodes": 2, "max_nodes": 4}, 1, ((2, 4), 0, 1, 0, 0)),
    "-n16": ({"min_nodes": 1, "tasks": 16, "min_cpus": 16}, 1, ((1, 16), 16, 0, 1, 0)),
    "-n16 -c2": (
        {"min_nodes": 1, "tasks": 16, "cpus_per_task": 2, "min_cpus": 32}, 1,
        ((1, 16), 16, 0, 2, 0),
    ),
    "-n1 -c8": ({"min_nodes": 1, "tasks": 1, "cpus_per_task": 8}, 1, ((1, 1), 0, 8, 0, 0)),
    "-N1 -n16": ({"min_nodes": 1, "max_nodes": 1, "tasks": 16}, 1, ((1, 1), 0, 16, 0, 0)),
    "-N1 -n3 -c2": (
        {"min_nodes": 1, "max_nodes": 1, "tasks": 3, "cpus_per_task": 2}, 1, ((1, 1), 0, 6, 0, 0),
    ),
    "-N2 -n8": ({"min_nodes": 2, "max_nodes": 2, "tasks": 8}, 1, ((2, 2), 8, 0, 1, 0)),
    "-N4 -n4": ({"min_nodes": 4, "max_nodes": 4, "tasks": 4}, 1, ((4, 4), 0, 1, 0, 0)),
    "-N4 -n2": ({"min_nodes": 4, "max_nodes": 4, "tasks": 2}, 1, ((4, 4), 0, 1, 0, 0)),
    "-N4 --ntasks-per-node=3": (
        {"min_nodes": 4, "max_nodes": 4, "tasks_per_node": 3}, 1, ((4, 4), 0, 3, 0, 0),
    ),
    "-N4 -n12 --ntasks-per-node=3": (
        {"min_nodes": 4, "max_nodes": 4, "tasks": 12, "tasks_per_node": 3}, 1,
        ((4, 4), 0, 3, 0, 0),
    ),
    "-n10 --ntasks-per-node=4": (
        {"min_nodes": 1, "tasks": 10, "tasks_per_node": 4}, 1, ((3, 10), 10, 0, 1, 4),
    ),
    "-N2-8 -n4": ({"min_nodes": 2, "max_nodes": 8, "tasks": 4}, 1, ((2, 4), 4, 0, 1, 0)),
    "--mincpus=4": ({"min_nodes": 1, "min_cpus_per_node": 4}, 1, ((1, 1), 0, 4, 0, 0)),
    "-n8 --mincpus=4": (
        {"min_nodes": 1, "tasks": 8, "min_cpus_per_node": 4}, 1, ((1, 2), 2, 0, 4, 0),
    ),
    "64 CPUs, no tasks": ({"min_nodes": 1, "min_cpus": 64}, 1, ((1, 64), 64, 0, 1, 0)),
    "-N4, 16 CPUs": ({"min_nodes": 4, "max_nodes": 4, "min_cpus": 16}, 1, ((4, 4), 16, 0, 1, 0)),
    "-N2 -n4, 8 CPUs": (
        {"min_nodes": 2, "max_nodes": 2, "tasks": 4, "min_cpus": 8}, 1, ((2, 2), 4, 0, 2, 0),
    ),
    "hyper-threads: -n1": ({"min_nodes": 1, "tasks": 1}, 2, ((1, 1), 0, 2, 0, 0)),
    "hyper-threads: -n4": ({"min_nodes": 1, "tasks": 4}, 2, ((1, 2), 2, 0, 2, 0)),
    "hyper-threads: -n3": ({"min_nodes": 1, "tasks": 3}, 2, ((1, 2), 2, 0, 2, 0)),
    "hyper-threads: -N1 -n3 -c3": (
        {"min_nodes": 1, "max_nodes": 1, "tasks": 3, "cpus_per_task": 3}, 2, ((1, 1), 0, 10, 0, 0),
    ),
    "hyper-threads: -n4 -c3": (
        {"min_nodes": 1, "tasks": 4, "cpus_per_task": 3}, 2, ((1, 2), 2, 0, 6, 0),
    ),
    "hyper-threads: -n4 -c4": (
        {"min_nodes": 1, "tasks": 4, "cpus_per_task": 4}, 2, ((1, 4), 4, 0, 4, 0),
    ),
    "hyper-threads: -N3 -n4": (
        {"min_nodes": 3, "max_nodes": 3, "tasks": 4}, 2, ((3, 3), 3, 0, 2, 0),
    ),
    "hyper-threads: -N4 --ntasks-per-node=3": (
        {"min_nodes": 4, "max_nodes": 4, "tasks_per_node": 3}, 2, ((4, 4), 0, 4, 0, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "threads", "expected"), SHAPES.values(), ids=SHAPES)
def test_tasks_and_cpus(options, threads, expected):
    found = ask(a_layout(threads), **options)
    assert found.problem == ""
    assert (
        (found.min_nodes, found.max_nodes), found.tasks, found.per_node[0], found.per_task[0],
        found.max_tasks_per_node,
    ) == expected  # fmt: skip


@pytest.mark.parametrize("nodes", [(1, 1), (1, 0), (2, 2), (2, 4), (5, 5)])
@each(threads_and_cpus=list(product((1, 2, 4), (1, 2, 3, 4))), tasks=range(1, 12))
def test_the_plan_holds_every_task_in_whole_cores(threads_and_cpus, tasks, nodes):
    (threads, cpus), (low, high) = threads_and_cpus, nodes
    found = ask(a_layout(threads), min_nodes=low, max_nodes=high, tasks=tasks, cpus_per_task=cpus)
    held = (found.tasks * found.per_task[0]) or found.min_nodes * found.per_node[0]
    assert held >= tasks * cpus
    assert found.per_node[0] % threads == 0
    assert found.per_task[0] % threads == 0
    assert held < tasks * cpus + max(low, tasks) * threads * cpus  # and is not lavish
    assert found.max_nodes >= found.min_nodes >= low
    assert not found.tasks or found.min_nodes <= found.tasks


def test_memory_per_node():
    assert ask(memory_per_node_mib=500).per_node[1] == 500


def test_memory_per_cpu_follows_rounded_cpus():
    found = ask(a_layout(threads=2), min_nodes=1, max_nodes=1, tasks=3, memory_per_cpu_mib=100)
    assert found.per_node[:2] == (4, 400)


def test_memory_per_cpu_of_tasks_over_nodes():
    found = ask(tasks=8, cpus_per_task=2, memory_per_cpu_mib=100)
    assert (found.per_node[1], found.per_task[1]) == (0, 200)


def test_unstated_memory_is_all_of_the_node():
    assert ask(a_layout(optional=False)).exclusive
    assert not ask(a_layout(optional=False), memory_per_node_mib=1).exclusive
    assert not ask(a_layout(optional=True)).exclusive


def test_memory_that_is_not_consumed_only_excludes_small_nodes():
    found = ask(a_layout(memory=False), memory_per_node_mib=2000)
    assert found.per_node[1] == 0
    assert found.excluded == (0, 1, 2, 3, 4, 5)
    assert ask(a_layout(memory=False), memory_per_node_mib=1000).excluded == ()


@each(
    options=(
        {"tasks": 20, "memory_per_cpu_mib": 256},
        {"tasks": 6, "cpus_per_task": 2, "memory_per_cpu_mib": 500},
        {"min_cpus_per_node": 4, "memory_per_cpu_mib": 250},
    )
)
def test_memory_per_cpu_that_is_not_consumed_counts_for_the_least_cpus_of_a_node(options):
    """Slurm starts such jobs on nodes that are too small for all of their tasks' memory."""
    request = {"min_nodes": 1, "max_nodes": 1} | options
    assert ask(a_layout(memory=False), **request).excluded == ()
    more = request | {"memory_per_cpu_mib": 1001}
    assert ask(a_layout(memory=False), **more).excluded[:6] == (0, 1, 2, 3, 4, 5)


def test_a_typed_device_is_also_a_plain_one():
    assert ask(gres_per_node=[pb.Gres(name="gpu:a100", count=2)]).per_node[2:] == (2, 2)
    assert ask(gres_per_node=[pb.Gres(name="gpu", count=2)]).per_node[2:] == (2, 0)


def test_exclusive_by_request_or_partition():
    assert not ask().exclusive
    assert ask(exclusive=True).exclusive
    assert ask(partitions=["batch", "whole"]).exclusive


def test_malleable_bounds_replace_the_nodes():
    found = ask(
        min_nodes=4,
        max_nodes=4,
        malleable=pb.Malleable(min_nodes=2, max_nodes=8, node_constraint="pof2"),
    )
    assert (found.min_nodes, found.max_nodes, found.width_rule) == (2, 8, 1)


def test_requested_nodes_that_malleable_bounds_exclude_are_no_start():
    bounds = pb.Malleable(min_nodes=2, max_nodes=8, node_constraint="even")
    for minimum, maximum in ((1, 1), (3, 3), (9, 12), (10, 0)):
        found = ask(min_nodes=minimum, max_nodes=maximum, malleable=bounds)
        assert "(2 to 8, even)" in found.start_problem
        assert not found.problem
    for minimum, maximum in ((1, 0), (1, 2), (3, 4), (8, 8), (7, 0)):
        assert not ask(min_nodes=minimum, max_nodes=maximum, malleable=bounds).start_problem
    assert not ask(min_nodes=3, max_nodes=3).start_problem


def test_names_become_indexes():
    found = ask(
        min_nodes=2, max_nodes=4, required_nodes="n[1,3,5]", excluded_nodes="n7,gone",
        reservation="maint", licences=[pb.LicenceUse(name="ansys", count=3)], features="a&b",
    )  # fmt: skip
    assert found.required == (1, 3, 5)
    assert found.min_nodes == 3  # at least those that are required
    assert found.excluded == (7,)
    assert found.reservation == 0
    assert found.licences == (0, 3)
    assert found.features == "a&b"


def test_a_partition_named_twice_counts_once():
    assert ask(partitions=["batch"] * 1000 + ["whole"]).partitions == (0, 1)


def test_an_unknown_partition_beside_a_known_one_is_left_out():
    assert ask(partitions=["gone", "batch"]).partitions == (0,)


PROBLEMS = {
    "no partition": ({"partitions": []}, "names no partition"),
    "unknown partition": ({"partitions": ["x"]}, "no partition 'x'"),
    "bounds": ({"min_nodes": 4, "max_nodes": 2}, "at least 4 and at most 2 nodes"),
    "required": ({"max_nodes": 2, "required_nodes": "n[0-2]"}, "at least 3 and at most 2"),
    "unknown node": ({"required_nodes": "n99"}, "no node 'n99'"),
    "bad hostlist": ({"required_nodes": "n[1-"}, "brackets"),
    "long list": ({"excluded_nodes": "n1," * 30_000 + "n1"}, "longer than 65536 characters"),
    "many licences": ({"licences": [pb.LicenceUse(name="x")] * 1025}, "more than 1024"),
    "signs": ({"reservation": "a\nb\x1b"}, "no reservation 'a?b?'"),
    "bad excluded": ({"excluded_nodes": "n[1-"}, "brackets"),
    "gres": ({"gres_per_node": [pb.Gres(name="fpga", count=1)]}, "'fpga', which no node has"),
    "licence": ({"licences": [pb.LicenceUse(name="x", count=1)]}, "no licence 'x'"),
    "reservation": ({"reservation": "x"}, "no reservation 'x'"),
    "memory twice": ({"memory_per_node_mib": 1, "memory_per_cpu_mib": 1}, "per node and per CPU"),
    "rule": ({"malleable": pb.Malleable(node_constraint="prime")}, "there are pof2, even, odd"),
    "no width": (
        {"malleable": pb.Malleable(min_nodes=5, max_nodes=7, node_constraint="pof2")},
        "no node count from 5 to 7 is pof2",
    ),
    "no cube": (
        {"malleable": pb.Malleable(min_nodes=2, max_nodes=7, node_constraint="cubic")},
        "no node count from 2 to 7 is cubic",
    ),
    "power": ({"malleable": pb.Malleable(min_power_w=300, max_power_w=200)}, "300 W exceeds"),
    "malleable bounds": ({"malleable": pb.Malleable(min_nodes=9, max_nodes=3)}, "at least 9"),
    "huge nodes": ({"min_nodes": 4_000_000_000}, "asks for 4000000000 nodes"),
    "huge tasks": ({"tasks": 4_000_000_000}, "more CPUs"),
    "huge product": ({"tasks": 1 << 20, "cpus_per_task": 1 << 20}, "more CPUs"),
    "huge memory": ({"memory_per_node_mib": 1 << 63}, "more than any node"),
    "huge memory per CPU": ({"tasks": 9, "memory_per_cpu_mib": 1 << 60}, "more than any node"),
    "huge constraint": ({"features": "a" * 5000}, "constraint longer"),
}


@pytest.mark.parametrize(("options", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_user_is_told_what_is_wrong(options, problem):
    found = ask(**options)
    assert problem in found.problem
    assert len(found.per_node) == len(found.per_task) == 4
    assert len(found.licences) == 2


def test_nodes_that_differ_in_threads_are_for_the_controller_to_choose_from():
    layout = a_layout(threads=2, mixed=True)
    assert ask(layout, min_nodes=1).controller_chooses
    assert not ask(layout, min_nodes=1, partitions=["whole"]).controller_chooses
    assert not ask(layout, min_nodes=1, malleable=pb.Malleable(min_nodes=1)).controller_chooses


@pytest.mark.parametrize(
    ("names", "problem", "hold"),
    [
        ("maint", "", Hold.BAD_REQUEST),
        ("maint,other", "needs room in one of the reservations maint,other", Hold.REFUSED),
        ("maint,gone", "no reservation 'gone'", Hold.BAD_REQUEST),
        ("gone", "no reservation 'gone'", Hold.BAD_REQUEST),
    ],
)
def test_one_of_several_reservations_is_for_the_controller_to_find(names, problem, hold):
    lowered = ask(a_layout(), reservation=names, controller_chooses=True)
    assert (lowered.problem, lowered.problem_hold) == (problem, hold)


COUNTED = "[rack1*1&rack2*2]"


def test_a_constraint_that_only_the_controller_understands_is_no_error_of_the_user():
    """Slurm has accepted it: the job only waits for nodes."""
    lowered = ask(a_layout(), features=COUNTED, controller_chooses=True)
    assert lowered.problem == f"the controller chooses its nodes: {COUNTED}"
    assert lowered.problem_hold is Hold.REFUSED
    assert (lowered.controller_chooses, lowered.partitions) == (True, (0,))
    assert not ask(a_layout(), features="[a|b]", controller_chooses=True).problem


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"controller_chooses": True, "chunks": pb.Chunks(chunks="2:ncpus=1")},
        {"controller_chooses": True, "malleable": pb.Malleable(min_nodes=1)},
    ],
)
def test_where_the_controller_cannot_place_it_it_stays_the_planners(options):
    """The planner then refuses the constraint, and says at which character."""
    assert "chooses" not in ask(a_layout(), features=COUNTED, **options).problem


def test_stated_power_makes_no_job_malleable():
    stated = pb.Malleable(min_power_w=90, max_power_w=250)
    found = ask(malleable=stated, min_nodes=2, max_nodes=2)
    plain = ask(min_nodes=2, max_nodes=2)
    assert (found.min_power_w, found.max_power_w) == (90, 250)
    assert replace(found, min_power_w=0, max_power_w=0) == plain
    mixed = a_layout(threads=2, mixed=True)
    assert ask(mixed, min_nodes=1, malleable=stated).controller_chooses
    beside = ask(reservation="x,y", malleable=stated)
    assert beside.partitions == ask(reservation="x,y").partitions


def test_power_is_read_of_chunks_too_and_bounded():
    requested = {
        "chunks": pb.Chunks(chunks="2:ncpus=1"),
        "min_nodes": 1,
        "tasks": 2,
        "cpus_per_task": 1,
    }
    stated = {**requested, "malleable": pb.Malleable(max_power_w=4_000_000_000)}
    assert ask(**stated).max_power_w == 1 << 30
    twisted = {**requested, "malleable": pb.Malleable(min_power_w=2, max_power_w=1)}
    assert "2 W exceeds" in ask(**twisted).problem
