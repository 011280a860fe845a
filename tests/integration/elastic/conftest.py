# SPDX-License-Identifier: Apache-2.0
"""A cluster of five nodes with three MPIs, scheduled by Slurm itself; see `jobs.py`.

SCHEDBRIDGE_KEEP_CLUSTER=1 leaves it running for the next run; SCHEDBRIDGE_ELASTIC_CLUSTER names it.
"""

import os
from collections.abc import Iterator

import pytest

from tests.integration.elastic.jobs import Elastic

KEEP = bool(os.environ.get("SCHEDBRIDGE_KEEP_CLUSTER"))
NAME = os.environ.get("SCHEDBRIDGE_ELASTIC_CLUSTER", "sbelastic")


@pytest.fixture(scope="session")
def session_elastic() -> Iterator[Elastic]:
    cluster = Elastic(
        NAME, "--nodes", "5", "--containers", "5", "--no-bridge", "--scheduler", "backfill",
        "--image", "mpi", "--set",
        "SchedulerParameters=permit_job_expansion,bf_interval=1,sched_min_interval=100000",
    )  # fmt: skip
    if not (KEEP and NAME in cluster.process("scontrol", "show", "config").stdout):
        cluster.up()
    cluster.compile()
    yield cluster
    if not KEEP:
        cluster.down()


@pytest.fixture
def elastic(session_elastic: Elastic) -> Elastic:
    """The cluster, empty."""
    session_elastic.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    session_elastic.wait_empty()
    return session_elastic
