# SPDX-License-Identifier: Apache-2.0
"""Python programs grow and shrink in a real job: with mpi4py, and without MPI."""

import re
import time

import pytest

from tests.integration.elastic.jobs import Elastic

WHEEL = "env MPI4PY_LIBMPI=/opt/mpich/lib/libmpi.so.12 /opt/mpich/bin/python"


@pytest.fixture(scope="session")
def heat_result(session_elastic: Elastic) -> str:
    """The last line of a rigid run."""
    return session_elastic.rigid(f"{WHEEL} elastic/examples/heat.py 64 64 400 5")


@pytest.mark.parametrize("engine", ["join", "relaunch"])
def test_mpi4py_grows_and_shrinks_and_computes_the_same(elastic, heat_result, engine):
    options = [] if engine == "join" else ["--engine", "relaunch"]
    program = f"{WHEEL} elastic/examples/heat.py 64 64 400 5 0.08"
    job = elastic.start(program, "--mpi", "pmi2", *options)
    job.series()
    output = job.end()
    assert [line.split()[-1] for line in job.lines("heat.py")[:-1]] == ["2", "4", "2", "1"], output
    assert job.lines("heat.py")[-1] == heat_result
    assert "exit 0" in output


def test_a_task_farm_loses_no_task(elastic):
    """Slow: 200 tasks of 0.2 s, while workers come and go."""
    farm = "/opt/schedbridge/bin/python elastic/examples/farm.py"
    worker = f"'{farm} worker elastic/farm.address'"
    elastic.run("rm", "-f", "elastic/farm.address")
    job = elastic.start(f"{farm} elastic/farm.address 200 0.2", "--worker", worker).connected()
    job.series()
    output = job.end()
    total = sum(sum(i * i for i in range(number)) for number in range(200))
    # A worker that is asked to end before Python is up has done nothing, and is not counted.
    (workers,) = re.findall(rf"farm: sum {total} from (\d+) workers", output)
    assert int(workers) > 1
    assert "ends when asked" in output
    assert "exit 0" in output


def test_dask_workers_come_and_go(elastic):
    path = "PATH=/opt/mpich/bin:/usr/bin:/bin"
    worker = f"'env {path} sh elastic/examples/dask_worker.sh elastic/dask.json'"
    elastic.run("rm", "-f", "elastic/dask.json")
    program = f"env {path} python elastic/examples/dask_farm.py elastic/dask.json 300 0.3"
    job = elastic.start(program, "--worker", worker).connected()
    job.series()
    output = job.end()
    total = sum(sum(i * i for i in range(number)) for number in range(300))
    assert f"dask: sum {total} from" in output
    assert "dask: shrink to 1 nodes" in output
    assert "exit 0" in output


def test_a_shell_program_is_told_by_file_and_signal(elastic):
    script = (
        'trap "echo shell: nodes $(cat $SCHEDBRIDGE_ELASTIC_NODES | wc -l)" USR1; '
        "for i in $(seq 100); do sleep 0.1; done"
    )
    program = f"bash -c {_quoted(script)}"
    job = elastic.start(program, "--engine", "program", "--signal", "USR1")
    time.sleep(1)  # its shell sets the trap meanwhile; nothing tells when
    assert job.change("grow", "n2", "n3")["outcome"] == "done"
    assert job.change("shrink", "n3")["outcome"] == "done"
    assert "exit 0" in job.end()
    assert len(job.lines("shell")) == 2


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
