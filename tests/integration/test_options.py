# SPDX-License-Identifier: Apache-2.0
"""The options that users get from the SPANK plugin: taken, shown, obeyed, and refused when wrong.

Every case runs the real sbatch on the login side; what it leaves in the queue is Slurm's answer.
"""

import pytest

from tests.integration.slurm import Cluster, expand

OPTIONS = (
    "--min-nodes-invasic", "--max-nodes-invasic", "--malleable", "--node-constraints",
    "--min-power", "--max-power",
)  # fmt: skip


def submit(cluster: Cluster, *options: str) -> tuple[int, str]:
    """Submits a job that never gets old; returns sbatch's exit code and all it said."""
    done = cluster.process(
        "sbatch", "--parsable", "-o", "/dev/null", "-t1", *options, "--wrap", "true"
    )
    return done.returncode, done.stdout + done.stderr


def submit_script(cluster: Cluster, *lines: str) -> tuple[int, str]:
    """The same with the options in #SBATCH lines."""
    text = "\n".join(["#!/bin/sh", "#SBATCH -t1", "#SBATCH -o /dev/null", *lines, "true", ""])
    done = cluster.process("sbatch", "--parsable", stdin=text)
    return done.returncode, done.stdout + done.stderr


def nodes_of(cluster: Cluster, job_id: str) -> tuple[str, ...]:
    (record,) = cluster.assert_sound([job_id], cpus_per_node=4)
    return record.nodes


def widen(cluster: Cluster, *options: str, drained: int = 1) -> int:
    """How many nodes a job gets on 8 nodes of which some are drained."""
    names = sorted(set(cluster.run("sinfo", "-N", "-h", "-o", "%N").split()))[:drained]
    if names:
        cluster.root(
            "scontrol", "update", f"NodeName={','.join(names)}", "State=DRAIN", "Reason=test"
        )
    try:
        job = cluster.sbatch("--exclusive", "-t1", *options, run="true")
        found = nodes_of(cluster, job)
    finally:
        if names:
            cluster.root("scontrol", "update", f"NodeName={','.join(names)}", "State=RESUME")
    assert not set(found) & set(names)
    return len(found)


def test_help_tells_of_the_options(cluster: Cluster) -> None:
    text = cluster.run("sbatch", "--help")
    for option in OPTIONS:
        assert option in text


@pytest.mark.parametrize(
    "options",
    [
        ("--min-nodes-invasic=1", "--max-nodes-invasic=4"),
        ("--malleable=2-4",),
        ("--malleable=1-8", "--node-constraints=pof2"),
        ("--node-constraints=even", "-N2-6"),
        ("--node-constraints=odd", "-N1-5"),
        ("--node-constraints=cubic", "-N1-8"),
        ("--min-power=100", "--max-power=250"),
        ("--min-power=100",),
        ("--max-power=250",),
    ],
    ids=" ".join,
)
def test_right_values_are_taken_on_both_ways(cluster: Cluster, options: tuple[str, ...]) -> None:
    code, said = submit(cluster, *options)
    assert code == 0, said
    code_script, said_script = submit_script(cluster, *(f"#SBATCH {o}" for o in options))
    assert code_script == 0, said_script
    cluster.assert_sound([said.strip(), said_script.strip()], cpus_per_node=4)


WRONG = {
    "not a number": (("--min-nodes-invasic=few",), "min-nodes-invasic"),
    "zero nodes": (("--min-nodes-invasic=0",), "min-nodes-invasic"),
    "negative": (("--max-nodes-invasic=-2",), "max-nodes-invasic"),
    "a number and more": (("--max-nodes-invasic=4x",), "max-nodes-invasic"),
    "a fraction": (("--min-nodes-invasic=1.5",), "min-nodes-invasic"),
    "beyond any machine": (("--max-nodes-invasic=99999999999",), "max-nodes-invasic"),
    "empty": (("--min-nodes-invasic=",), "min-nodes-invasic"),
    "no range": (("--malleable=4",), "malleable"),
    "an open range": (("--malleable=2-",), "malleable"),
    "a range upside down": (("--malleable=5-2",), "malleable"),
    "a range from zero": (("--malleable=0-3",), "malleable"),
    "words": (("--malleable=all",), "malleable"),
    "three bounds": (("--malleable=1-2-3",), "malleable"),
    "unknown constraint": (("--node-constraints=prime",), "node-constraints"),
    "constraint in capitals with a tail": (("--node-constraints=pof2,even",), "node-constraints"),
    "power in words": (("--min-power=low",), "min-power"),
    "power with a unit": (("--max-power=200W",), "max-power"),
    "negative power": (("--min-power=-5",), "min-power"),
    "least above most nodes": (
        ("--min-nodes-invasic=6", "--max-nodes-invasic=3"), "min-nodes-invasic",
    ),
    "least above most power": (("--min-power=300", "--max-power=200"), "min-power"),
    "both forms, different": (("--malleable=2-4", "--min-nodes-invasic=3"), "malleable"),
    "no count obeys the constraint": (
        ("--malleable=5-7", "--node-constraints=pof2"), "node-constraints",
    ),
    "no cube in the range": (("--malleable=2-7", "--node-constraints=cubic"), "node-constraints"),
    "one odd number asked to be even": (
        ("--malleable=3-3", "--node-constraints=even"), "node-constraints",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_at_submission(cluster: Cluster, name: str) -> None:
    options, named = WRONG[name]
    before = cluster.queue()
    for code, said in (
        submit(cluster, *options),
        submit_script(cluster, *(f"#SBATCH {option}" for option in options)),
    ):
        assert code != 0, f"{options} was taken: {said}"
        assert named in said, f"the message does not name --{named}: {said}"
        assert len(said.splitlines()) <= 3, said
    assert cluster.queue() == before


@pytest.mark.parametrize(
    ("options", "width"),
    [
        (("-N1-7", "--node-constraints=pof2"), 4),
        (("-N1-7", "--node-constraints=even"), 6),
        (("-N1-6", "--node-constraints=odd"), 5),
        (("-N1-7", "--node-constraints=cubic"), 1),
        (("--malleable=3-7", "--node-constraints=pof2"), 4),
        (("--malleable=2-5",), 5),
        (("--min-nodes-invasic=2", "--max-nodes-invasic=3"), 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_job_gets_the_widest_allowed_count(
    cluster: Cluster, options: tuple[str, ...], width: int
) -> None:
    """Seven nodes are free, the eighth is drained."""
    assert widen(cluster, *options, drained=1) == width


def test_eight_free_nodes_hold_a_cube(cluster: Cluster) -> None:
    assert widen(cluster, "-N1-8", "--node-constraints=cubic", drained=0) == 8


def test_a_constraint_holds_for_the_nodes_that_are_free(cluster: Cluster) -> None:
    """Three nodes are free now: a power of two of at least two nodes takes two of them at once."""
    blocker = cluster.sbatch("-N5", "--exclusive", "-t2", run="sleep 5")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch("-N2-8", "--exclusive", "-t1", "--node-constraints=pof2", run="true")
    cluster.wait_empty()
    cluster.assert_sound([blocker, job], cpus_per_node=4)
    assert len(nodes_of(cluster, job)) in (2, 4, 8)


def test_the_service_knows_the_values(cluster: Cluster) -> None:
    """A waiting job is planned as wide as its options allow, and stays so over a reconfigure."""
    blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 300")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch(
        "-N1-7", "--exclusive", "-t1", "--node-constraints=pof2", "--min-power=90",
        "--max-power=240", run="true",
    )  # fmt: skip
    assert planned_width(cluster, job) == 4
    cluster.root("scontrol", "reconfigure")
    cluster.wait_for("slurmctld", lambda: cluster.process("squeue").returncode == 0)
    assert planned_width(cluster, job) == 4
    cluster.run("scancel", blocker)
    assert len(nodes_of(cluster, job)) == 4


def planned_width(cluster: Cluster, job: str) -> int:
    """Number of nodes that squeue announces."""

    def announced() -> str:
        return cluster.job(job).get("SchedNodeList", "").removeprefix("(null)")

    return len(expand(cluster.wait_for("an announced start", announced, 30)))


def test_values_that_were_forged_past_the_client_are_refused_by_the_service(
    cluster: Cluster,
) -> None:
    """SPANK values come from the client's environment: whoever forges one hurts only this job."""
    forged = cluster.process(
        "env", "_SLURM_SPANK_OPTION_bridge_node-constraints=prime",
        "sbatch", "--parsable", "-o", "/dev/null", "-t1", "-N1", "--wrap", "true",
    )  # fmt: skip
    honest = cluster.sbatch("-N1", "-t1", run="true")
    cluster.wait_state(honest, "COMPLETED")
    cluster.assert_sound([honest], cpus_per_node=4)
    if forged.returncode == 0:
        cluster.root("scancel", forged.stdout.strip())


def test_srun_and_salloc_take_the_options_too(cluster: Cluster) -> None:
    out = cluster.run("srun", "-N1-3", "--exclusive", "--node-constraints=pof2", "hostname")
    assert len(out.splitlines()) == 2
    bad = cluster.process("srun", "-N1", "--node-constraints=prime", "hostname")
    assert bad.returncode != 0
    assert "node-constraints" in bad.stderr
