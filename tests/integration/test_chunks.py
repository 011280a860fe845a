# SPDX-License-Identifier: Apache-2.0
"""Requests in chunks on a real cluster: taken, refused with a caret, and run CPU for CPU.

What a job holds on each node is Slurm's own record (`scontrol show job -d`). 8 nodes of 4 CPUs.
"""

import re
from collections.abc import Iterator

import pytest

from tests.integration.slurm import Cluster, expand


def held(cluster: Cluster, job: str) -> dict[str, int]:
    """CPUs by node of a running job."""
    cluster.wait_state(job, "RUNNING")
    out = cluster.run("scontrol", "show", "job", "-d", job)
    found = {}
    for nodes, cpus in re.findall(r"^\s+Nodes=(\S+) CPU_IDs=(\S+) ", out, re.MULTILINE):
        for node in expand(nodes):
            found[node] = sum(
                int(high or low) - int(low) + 1 for low, high in re.findall(r"(\d+)-?(\d*)", cpus)
            )
    assert found, out
    return found


def run_chunks(cluster: Cluster, *options: str) -> dict[str, int]:
    job = cluster.sbatch("-t1", *options, run="sleep 60")
    try:
        return held(cluster, job)
    finally:
        cluster.run("scancel", job)


def test_help_tells_of_the_options(cluster: Cluster) -> None:
    text = cluster.run("sbatch", "--help")
    assert "--chunks" in text
    assert "--place" in text


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        (("--chunks=2:ncpus=2",), [4]),
        (("--chunks=2:ncpus=2", "--place=free"), [4]),
        (("--place=scatter", "--chunks=2:ncpus=2"), [2, 2]),
        (("--chunks=3:ncpus=1", "--place=pack"), [3]),
        (("--chunks=3:ncpus=3",), [3, 3, 3]),
        (("--chunks=select=2:ncpus=2:mem=100mb,place=scatter",), [2, 2]),
        (("--chunks=2:ncpus=1+1:ncpus=1", "--place=scatter"), [1, 1, 1]),
        (("--chunks=2:ncpus=1", "--place=scatter:excl"), [4, 4]),
        (("--chunks=2:ncpus=4:mpiprocs=4",), [4, 4]),
        (("--chunks=8:ncpus=1:large=true", "--place=scatter:shared"), None),
        (("--chunks=4:ncpus=1:large=true", "--place=scatter"), [1, 1, 1, 1]),
        (("--chunks=1:ncpus=2:host=n7",), [2]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_chunks_run_on_what_they_ask_for(
    cluster: Cluster, options: tuple[str, ...], cpus: list[int] | None
) -> None:
    if cpus is None:  # eight chunks, four such nodes
        done = cluster.process("sbatch", "-t1", *options, "--wrap", "true")
        assert done.returncode != 0
        return
    found = run_chunks(cluster, *options)
    assert sorted(found.values()) == cpus
    if "large=true" in options[0]:
        assert set(found) <= {"n5", "n6", "n7", "n8"}
    if "host=n7" in options[0]:
        assert set(found) == {"n7"}


def test_a_chunk_is_not_split_over_what_is_left(cluster: Cluster) -> None:
    """Three CPUs are free on every node: Slurm alone would put chunks of two there as 3 + 3 + 2."""
    blocker = cluster.sbatch("-t2", "--chunks=8:ncpus=1", "--place=scatter", run="sleep 100")
    assert held(cluster, blocker) == {f"n{number}": 1 for number in range(1, 9)}
    job = cluster.sbatch("-t1", "--chunks=4:ncpus=2", run="sleep 60")
    assert sorted(held(cluster, job).values()) == [2, 2, 2, 2]


def test_tasks_of_an_array_have_chunks_each(cluster: Cluster) -> None:
    job = cluster.sbatch(
        "-t1", "--array=0-3", "--chunks=2:ncpus=2", "--place=scatter", run="sleep 60"
    )
    for task in range(4):
        assert sorted(held(cluster, f"{job}_{task}").values()) == [2, 2]


def test_a_job_that_waits_is_planned_and_then_runs_as_planned(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t1", run="sleep 300")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch("-t1", "--chunks=6:ncpus=3", run="sleep 60")

    def announced() -> str:
        return cluster.job(job).get("SchedNodeList", "").removeprefix("(null)")

    assert len(expand(cluster.wait_for("an announced start", announced, 30))) == 6
    cluster.run("scancel", blocker)
    assert sorted(held(cluster, job).values()) == [3] * 6


# ---------------------------------------------------------------- srun, salloc, steps


def test_srun_and_salloc_take_chunks(cluster: Cluster) -> None:
    options = ("-t1", "--chunks=2:ncpus=2", "--place=scatter")
    out = cluster.run("srun", *options, "printenv", "SLURM_JOB_CPUS_PER_NODE")
    assert out.split() == ["2(x2)", "2(x2)"]
    out = cluster.run("salloc", *options, "printenv", "SLURM_JOB_CPUS_PER_NODE")
    assert out.splitlines()[-1] == "2(x2)"
    out = cluster.run("salloc", "-t1", "--chunks=3:ncpus=1", "srun", "-n2", "hostname")
    assert len([line for line in out.splitlines() if line.startswith("n")]) == 2


def test_threads_are_told(cluster: Cluster) -> None:
    out = cluster.run(
        "srun", "-t1", "--chunks=1:ncpus=2:ompthreads=2", "printenv", "OMP_NUM_THREADS"
    )
    assert out.split() == ["2"]


# ---------------------------------------------------------------- refusals

WRONG = {
    "a word for a number": (("--chunks=2:ncpus=x",), "chunks", 9),
    "no unit": (("--chunks=2:ncpus=4:mem=10+ncpus=1",), "chunks", 17),
    "no such place": (("--chunks=2:ncpus=4", "--place=pack:spread"), "place", 6),
    "twice": (("--chunks=ncpus=1:ncpus=2",), "chunks", 9),
    "nothing": (("--chunks=",), "chunks", 1),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("way", ["line", "script"])
def test_a_caret_points_at_the_character(cluster: Cluster, name: str, way: str) -> None:
    options, option, position = WRONG[name]
    if way == "line":
        done = cluster.process("sbatch", *options, "--wrap", "true")
    else:
        script = "".join(f"#SBATCH {option}\n" for option in options)
        done = cluster.process("sbatch", stdin=f"#!/bin/sh\n{script}true\n")
    assert done.returncode != 0
    lines = done.stderr.splitlines()
    first = next(at for at, line in enumerate(lines) if f"error: --{option}: " in line)
    text = next(o for o in options if o.startswith(f"--{option}=")).split("=", 1)[1]
    assert lines[first + 1] == f"  {text}"
    assert lines[first + 2] == " " * (position + 1) + "^"
    assert not cluster.queue()


@pytest.mark.parametrize(
    "options",
    [
        ("--chunks=2:ncpus=2", "-n3"), ("-n3", "--chunks=2:ncpus=2"),
        ("-N2", "--chunks=2:ncpus=2"), ("--chunks=2:ncpus=2", "--gpus=1"),
        ("--chunks=2:ncpus=2", "-w", "n5"), ("--chunks=2:ncpus=2", "--node-constraints=odd"),
        ("--chunks=2:ncpus=2", "--ntasks-per-node=1"), ("--place=scatter",),
        ("--chunks=ncpus=3:mpiprocs=2",), ("--chunks=2:ncpus=1:mem=1gb,place=scatter", "--mem=5G"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_contradictions_are_refused(cluster: Cluster, options: tuple[str, ...]) -> None:
    for command in (["sbatch", *options, "--wrap", "true"], ["srun", *options, "true"]):
        done = cluster.process(*command)
        assert done.returncode != 0, f"{command}: taken"
        assert "chunks" in done.stderr, done.stderr
    assert not cluster.queue()


def test_a_step_has_no_chunks_of_its_own(cluster: Cluster) -> None:
    done = cluster.process(
        "salloc", "-t1", "--chunks=2:ncpus=2", "srun", "--chunks=1:ncpus=1", "true"
    )
    assert done.returncode != 0
    assert "step" in done.stderr


# ---------------------------------------------------------------- what the service says


def test_the_service_judges_what_slurm_took(cluster: Cluster) -> None:
    """A group that no node has a feature for: only the service knows."""
    job = cluster.sbatch("-t1", "--chunks=2:ncpus=1", "--place=free:group=row", run="true")
    reason = cluster.wait_for("a reason", lambda: reason_of(cluster, job, "row"), 30)
    assert "no node has a feature" in reason
    cluster.run("scancel", job)


def reason_of(cluster: Cluster, job: str, word: str) -> str:
    reason = cluster.run("squeue", "-h", "-j", job, "-o", "%R")
    return reason if word in reason else ""


# ---------------------------------------------------------------- chunks of several kinds


@pytest.fixture
def openccs(cluster: Cluster) -> Iterator[Cluster]:
    cluster.root("schedbridge", "policy", "set", "openccs")
    try:
        yield cluster
    finally:
        cluster.root("schedbridge", "policy", "set", "slurm-like")


def test_other_plan_stages_plan_them_too(cluster: Cluster) -> None:
    assert "slurm-like" in cluster.run("schedbridge", "status")
    found = run_chunks(cluster, "--chunks=1:ncpus=4+2:ncpus=1", "--place=scatter")
    assert sorted(found.values()) == [1, 1, 4]


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        (("--chunks=1:ncpus=4+2:ncpus=1", "--place=scatter"), [1, 1, 4]),
        (("--chunks=1:ncpus=4+2:ncpus=2",), [4, 4]),
        (("--chunks=1:ncpus=3+1:ncpus=1", "--place=pack"), [4]),
        (("--chunks=2:ncpus=3:mem=100mb+3:ncpus=1:mem=50mb", "--place=scatter"), [1, 1, 1, 3, 3]),
        (("--chunks=1:ncpus=4+1:ncpus=2", "--place=scatter:excl"), [4, 4]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_node_gives_just_its_chunks(
    openccs: Cluster, options: tuple[str, ...], cpus: list[int]
) -> None:
    assert sorted(run_chunks(openccs, *options).values()) == cpus


def test_each_kind_lies_where_its_features_are(openccs: Cluster) -> None:
    found = run_chunks(openccs, "--chunks=1:ncpus=2:fast=true+1:ncpus=4:large=true")
    by_cpus = {cpus: node for node, cpus in found.items()}
    assert by_cpus[2] in {"n1", "n2", "n3", "n4"}
    assert by_cpus[4] in {"n5", "n6", "n7", "n8"}


def test_a_host_is_obeyed(openccs: Cluster) -> None:
    assert run_chunks(openccs, "--chunks=2:ncpus=1:host=n7") == {"n7": 2}
    assert "illegal plan" not in openccs.script("logs", "service")


def test_a_job_sees_its_chunks(openccs: Cluster) -> None:
    out = openccs.run(
        "srun", "-t1", "--chunks=2:ncpus=4+3:ncpus=1", "--place=scatter",
        "sh", "-c", "echo $SLURM_JOB_CPUS_PER_NODE",
    )  # fmt: skip
    assert sorted(set(out.split()[0].split(","))) == ["1(x3)", "4(x2)"]


# ---------------------------------------------------------------- without the service


@pytest.fixture
def silent(cluster: Cluster) -> Iterator[Cluster]:
    cluster.script("stop", "service")
    try:
        yield cluster
    finally:
        cluster.script("cont", "service")


def test_slurm_runs_chunks_when_the_service_is_silent(silent: Cluster) -> None:
    job = silent.sbatch("-t1", "--chunks=2:ncpus=2", "--place=scatter", run="sleep 60")
    assert sorted(held(silent, job).values()) == [2, 2]
    mixed = silent.sbatch("-t1", "--chunks=1:ncpus=4+2:ncpus=2", "--place=scatter", run="sleep 60")
    found = held(silent, mixed)
    assert len(found) == 3
    assert sum(found.values()) == 8
