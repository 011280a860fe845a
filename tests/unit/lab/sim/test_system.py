# SPDX-License-Identifier: Apache-2.0
import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.requests import requests
from bridge.lab.sim.workloads.system import pool_of, read_system
from schedbridge_contracts.workloads import a_workload

TWO_ISLANDS = """
name: two islands
nodes:
  - {names: "thin[001-003]", cpus: 16, memory_mib: 65536, weight: 1}
  - {names: "gpu[1-2]", cpus: 32, memory_mib: 262144, gres: {gpu: 4}, features: [big], weight: 5}
partitions:
  - {name: batch, nodes: "thin[001-003]", max_time_s: 86400}
  - {name: large, queues: [3], priority_tier: 2, exclusive: true}
use_memory: true
"""


def described(tmp_path, text):
    path = tmp_path / "system.yaml"
    path.write_text(text)
    return read_system(path)


def test_a_description_becomes_nodes_and_partitions(tmp_path):
    system = described(tmp_path, TWO_ISLANDS)
    assert system.nodes.names == ("thin001", "thin002", "thin003", "gpu1", "gpu2")
    assert system.resources == ("cpus", "mem_mib", "gpu")
    assert system.nodes.capacity[[0, 4]].tolist() == [[16, 65536, 0], [32, 262144, 4]]
    assert system.processors == 3 * 16 + 2 * 32
    assert system.nodes.features[3] == {"big"}
    batch, large = system.partitions
    assert batch.nodes.tolist() == [0, 1, 2]
    assert (batch.max_time_s, batch.exclusive) == (86400, False)
    assert large.nodes.tolist() == [0, 1, 2, 3, 4]
    assert (large.priority_tier, large.exclusive) == (2, True)


def test_jobs_become_tasks_that_share_nodes(tmp_path):
    system = described(tmp_path, TWO_ISLANDS)
    workload = dataclasses.replace(
        a_workload([(1, 60, 60, 20), (2, 60, 60, 2)], system.processors),
        memory_kib=np.array([1500 * 1024 + 1, 0]),
        queue=np.array([1, 3]),
    )
    jobs = requests(workload, system)
    assert jobs.tasks.tolist() == [20, 2]
    assert (jobs.min_nodes.tolist(), jobs.max_nodes.tolist()) == ([1, 1], [5, 2])
    assert jobs.per_task.tolist() == [[1, 1501, 0], [1, 0, 0]]
    assert jobs.partitions.tolist() == [(0,), (1,)]
    assert jobs.exclusive.tolist() == [False, True]
    assert jobs.priority[0] > jobs.priority[1] > 0


def test_jobs_hold_whole_nodes_of_a_pool():
    jobs = requests(a_workload([(1, 60, 60, 3)], 8), pool_of(8))
    assert (jobs.min_nodes[0], jobs.max_nodes[0], jobs.tasks[0]) == (3, 3, 0)
    assert jobs.per_node.tolist() == [[1, 0]]
    assert jobs.exclusive.all()


def test_a_pool_that_no_memory_holds_is_refused_at_once():
    with pytest.raises(ConfigError, match=r"999999999999 processors .* give --procs"):
        pool_of(999_999_999_999)


def test_names_of_a_pool_sort_like_their_numbers():
    names = pool_of(11).nodes.names
    assert names == tuple(sorted(names))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes: []", "nodes: has fewer entries than 1"),
        ("nodes: [{names: a, cpus: 0}]", r"nodes\.0\.cpus: .*greater than or equal to 1"),
        ("nodes: [{names: a, cpus: many}]", r"nodes\.0\.cpus: must be a whole number"),
        (
            "nodes: [{names: a, cpus: 1, colour: red}]",
            r"nodes\.0\.colour: unknown key; there are",
        ),
        ('nodes: [{names: "a[1-", cpus: 1}]', r"nodes\.0\.names: 'a\[1-' is not a node set"),
        ('nodes: [{names: "a[1-3],a2", cpus: 1}, {names: a3, cpus: 1}]', "a3 is described twice"),
        (
            "nodes: [{names: a, cpus: 1}]\npartitions: [{name: p, nodes: b}]",
            r"partitions\.0\.nodes: no node b is described",
        ),
        ("nodes: [{names: a, cpus: 99999999999999999999}]", r"nodes\.0\.cpus: .*less than"),
        ("nodes: [", "is not YAML"),
        ("just words", "must be a section of keys, not .just words"),
    ],
)
def test_what_is_impossible_is_refused_by_file_and_key(tmp_path, text, says):
    with pytest.raises(ConfigError, match=f"system.yaml: .*{says}") as refused:
        described(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_a_missing_description_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_system(tmp_path / "none.yaml")


def test_a_queue_that_no_partition_takes_is_refused(tmp_path):
    system = described(
        tmp_path, "nodes: [{names: a, cpus: 8}]\npartitions: [{name: p, queues: [1]}]"
    )
    workload = a_workload([(1, 60, 60, 1)], 8)
    with pytest.raises(ConfigError, match="none takes queue -1"):
        requests(workload, system)


ASKED_BY_NODES = """
nodes:
  - {names: "thin[1-3]", cpus: 16, memory_mib: 1000, features: [thin, x86]}
  - {names: "fat[1-2]", cpus: 32, memory_mib: 4000, features: [fat, x86]}
use_memory: true
trace: {memory_unit: B, memory_per: node, nodes_field: 21}
"""


def asking(processors, texts):
    jobs = [(1, 60, 60, count) for count in processors]
    return dataclasses.replace(
        a_workload(jobs, 112),
        node_requests=np.array(texts, dtype=object),
        memory_kib=np.full(len(jobs), 5 * 1024),
    )


def test_nodes_that_a_trace_names_are_asked_for(tmp_path):
    system = described(tmp_path, ASKED_BY_NODES)
    texts = ["2:ppn=8:x86:thin", "1:ppn=4:fat2.example.org#excl", "1:ppn=1:^thin:^fat1"]
    jobs = requests(asking([16, 4, 1], texts), system)
    assert jobs.min_nodes.tolist() == jobs.max_nodes.tolist() == [2, 1, 1]
    assert jobs.tasks.tolist() == [16, 4, 1]
    assert jobs.max_tasks_per_node.tolist() == [8, 4, 1]
    assert jobs.features.tolist() == ["x86&thin", "", ""]
    assert jobs.required.tolist() == [(), (4,), ()]
    assert jobs.excluded.tolist() == [(), (), (0, 1, 2, 3)]
    assert jobs.exclusive.tolist() == [False, True, False]
    assert jobs.per_node[:, 1].tolist() == [5, 5, 5]  # on each node, whatever runs there
    assert not jobs.per_task[:, 1].any()


@pytest.mark.parametrize(
    ("processors", "text", "says"),
    [
        (4, "1:ppn=x", "job 1: 'x' is not a number"),
        (4, "1:ppn=4:gold", "job 1 asked for .*no node is named 'gold'"),
        (4, "1:ppn=4:^gold", "job 1 asked for .*no node is named 'gold'"),
        (5, "1:ppn=4", "job 1 asked for 4 processors by '1:ppn=4' and for 5"),
    ],
)
def test_nodes_that_cannot_be_meant_are_refused(tmp_path, processors, text, says):
    system = described(tmp_path, ASKED_BY_NODES)
    with pytest.raises(ConfigError, match=rf"trace\.nodes_field: {says}"):
        requests(asking([processors], [text]), system)


def test_a_dialect_is_refused_where_it_is_wrong(tmp_path):
    for text, says in (
        ("memory_unit: GB", r"trace\.memory_unit"),
        ("nodes_field: 18", r"trace\.nodes_field"),
        ("memory_per: job", r"trace\.memory_per"),
    ):
        with pytest.raises(ConfigError, match=says):
            described(tmp_path, f"nodes: [{{names: a, cpus: 1}}]\ntrace: {{{text}}}")


def test_switches_stand_in_a_file_beside(tmp_path):
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=a\nSwitchName=b Nodes=b")
    text = "nodes: [{names: 'a,b,c', cpus: 1}]\ntopology: topology.conf"
    topology = described(tmp_path, text).topology
    assert topology is not None
    assert topology.leaf_of_node.tolist() == [0, 1, -1]
    waiting = text.replace("topology.conf", "{file: topology.conf, wait_s: 60}")
    system = described(tmp_path, waiting)
    assert system.wait_s == 60
    assert system.topology is not None
    for wrong in (-1, 10**20):
        with pytest.raises(ConfigError, match=r"topology\.wait_s: input should be"):
            described(
                tmp_path, text.replace("topology.conf", f"{{file: topology.conf, wait_s: {wrong}}}")
            )
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=a Nodes=b")
    with pytest.raises(ConfigError, match=r"topology\.conf: line 1: a key is given twice"):
        described(tmp_path, text)


def test_switches_of_other_nodes_are_refused(tmp_path):
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=x[1-4]")
    with pytest.raises(ConfigError, match=r"topology: .*names none of the nodes \(a, \.\.\.\)"):
        described(tmp_path, "nodes: [{names: 'a,b,c', cpus: 1}]\ntopology: topology.conf")
