# SPDX-License-Identifier: Apache-2.0
"""How many processes `schedbridge run` starts on each node."""

import pytest

from bridge.cli.run import _tasks
from bridge.errors import ConfigError


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({}, 1),
        ({"SLURM_TASKS_PER_NODE": "4(x2)"}, 4),
        ({"SLURM_NTASKS_PER_NODE": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}, 2),
        ({"SLURM_NTASKS": "6", "SLURM_TASKS_PER_NODE": "2(x3)"}, 2),
        ({"SLURM_TASKS_PER_NODE": "8,4"}, 8),  # of unequal nodes; nobody asked for a number
        ({"SLURM_TASKS_PER_NODE": "many"}, 1),
    ],
)
def test_as_the_job_was_submitted(job: dict[str, str], expected: int):
    assert _tasks(job) == expected


def test_a_number_that_the_nodes_do_not_share_evenly_is_refused():
    job = {"SLURM_NTASKS": "3", "SLURM_TASKS_PER_NODE": "2,1"}
    with pytest.raises(ConfigError, match=r"--ntasks=3 gives this job 2,1; .* --ntasks-per-node"):
        _tasks(job)
