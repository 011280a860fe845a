# SPDX-License-Identifier: Apache-2.0
import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.sim.system import pool_of, read_system, requests
from tests.workloads import a_workload

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


def test_names_of_a_pool_sort_like_their_numbers():
    names = pool_of(11).nodes.names
    assert names == tuple(sorted(names))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes: []", "nodes: List should have at least 1 item"),
        ("nodes: [{names: a, cpus: 0}]", r"nodes\.0\.cpus: .*greater than or equal to 1"),
        ("nodes: [{names: a, cpus: many}]", r"nodes\.0\.cpus: .*valid integer"),
        ("nodes: [{names: a, cpus: 1, colour: red}]", r"nodes\.0\.colour: Extra inputs"),
        ('nodes: [{names: "a[1-", cpus: 1}]', r"nodes\.0\.names: 'a\[1-' is not a node set"),
        ('nodes: [{names: "a[1-3],a2", cpus: 1}, {names: a3, cpus: 1}]', "a3 is described twice"),
        (
            "nodes: [{names: a, cpus: 1}]\npartitions: [{name: p, nodes: b}]",
            r"partitions\.0\.nodes: no node b is described",
        ),
        ("nodes: [", "is not YAML"),
        ("just words", "system: "),
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
