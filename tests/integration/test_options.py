# SPDX-License-Identifier: Apache-2.0
"""The options that users get from the SPANK plugin: taken, shown, obeyed, and refused when wrong.

Every case runs the real sbatch on the login side; what it leaves in the queue is Slurm's answer.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from tests.integration.slurm import Cluster, expand

OPTIONS = (
    "--min-nodes-invasic", "--max-nodes-invasic", "--malleable", "--node-constraints",
    "--min-power", "--max-power", "--no-resize",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What sbatch answered: to options on the command line, or in #SBATCH lines."""

    way: str
    code: int
    said: str


def submit_all(cluster: Cluster, cases: Iterable[tuple[str, ...]]) -> dict[str, list[Answer]]:
    """Submits each case in both ways, all in one call; returns the answers by case."""
    sbatch = "sbatch --parsable -o /dev/null -t1"
    lines = []
    for number, options in enumerate(cases):
        script = "".join(f"#SBATCH {option}\n" for option in options)
        for way, command in (
            ("line", f"{sbatch} {shlex.join(options)} --wrap true"),
            ("script", f"printf '#!/bin/sh\\n%strue\\n' {shlex.quote(script)} | {sbatch}"),
        ):
            lines.append(f"said=$({command} 2>&1); code=$?")
            lines.append(f'printf "{number}|{way}|$code|%s\\0" "$said"')
    answers: dict[str, list[Answer]] = defaultdict(list)
    for entry in cluster.run("bash", "-c", "\n".join(lines)).split("\0"):
        if entry:
            number_text, way, code, said = entry.split("|", 3)
            answers[number_text].append(Answer(way, int(code), said))
    return answers


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


def test_who_shares_nodes_is_told_that_the_job_is_rigid(cluster: Cluster) -> None:
    """At submission and by explain; not with --exclusive."""
    options = ("--malleable=1-4", "-N1", "-t1", "--hold", "--wrap", "true")
    shared = cluster.process("sbatch", "--parsable", *options)
    whole = cluster.process("sbatch", "--parsable", "--exclusive", *options)
    try:
        assert shared.returncode == whole.returncode == 0
        assert "without --exclusive" in shared.stderr
        assert "without --exclusive" not in whole.stderr
    finally:
        cluster.run("scancel", shared.stdout.strip(), whole.stdout.strip())


def test_help_tells_of_the_options(cluster: Cluster) -> None:
    text = cluster.run("sbatch", "--help")
    for option in OPTIONS:
        assert option in text


RIGHT = [
    ("--min-nodes-invasic=1", "--max-nodes-invasic=4"),
    ("--malleable=2-4",),
    ("--malleable=1-8", "--node-constraints=pof2"),
    ("--malleable=2-4", "--min-nodes-invasic=2"),
    ("--node-constraints=even", "-N2-6"),
    ("--node-constraints=odd", "-N1-5"),
    ("--node-constraints=cubic", "-N1-8"),
    ("--min-power=100", "--max-power=250"),
    ("--min-power=100",),
    ("--max-power=250",),
    ("--malleable=1-4", "--no-resize"),
    ("--no-resize",),
]


def test_right_values_are_taken_on_both_ways(cluster: Cluster) -> None:
    jobs = []
    for number, answers in submit_all(cluster, RIGHT).items():
        assert [answer.way for answer in answers] == ["line", "script"]
        for answer in answers:
            assert answer.code == 0, f"{RIGHT[int(number)]} in {answer.way}: {answer.said}"
            jobs.append(answer.said.split()[-1])  # behind what it says of rigid jobs
    assert len(jobs) == 2 * len(RIGHT)
    cluster.wait_empty()
    cluster.assert_sound(jobs, cpus_per_node=4)


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
    "nodes that the constraint excludes": (
        ("-N3", "--malleable=1-8", "--node-constraints=pof2"), "--nodes=2 or --nodes=4",
    ),
    "nodes outside the range": (("-N5", "--malleable=1-4"), "--nodes=4"),
    "no cube in the range": (("--malleable=2-7", "--node-constraints=cubic"), "node-constraints"),
    "one odd number asked to be even": (
        ("--malleable=3-3", "--node-constraints=even"), "node-constraints",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def refusals(session_cluster: Cluster) -> dict[str, list[Answer]]:
    """What sbatch answers to the wrong values; nothing of it may get into the queue."""
    before = set(session_cluster.queue())
    answers = submit_all(session_cluster, [options for options, _ in WRONG.values()])
    assert set(session_cluster.queue()) <= before
    return {name: answers[str(number)] for number, name in enumerate(WRONG)}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_at_submission(
    refusals: dict[str, list[Answer]], name: str
) -> None:
    options, named = WRONG[name]
    assert [answer.way for answer in refusals[name]] == ["line", "script"]
    for answer in refusals[name]:
        assert answer.code != 0, f"{options} was taken in {answer.way}: {answer.said}"
        assert named in answer.said, f"the message does not name --{named}: {answer.said}"
        assert len(answer.said.splitlines()) <= 3, answer.said


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
    """No number from 3 to 7 but 4 is a power of two; so it is planned, over a reconfigure too."""
    blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 300")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch(
        "--malleable=3-7", "--exclusive", "-t1", "--node-constraints=pof2", "--min-power=90",
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


def test_the_environment_is_judged_like_the_command_line(cluster: Cluster) -> None:
    """SLURM_SPANK_... variables set the options, too: the same values are right and wrong."""
    variable = "SLURM_SPANK__SLURM_SPANK_OPTION_schedbridge_node_constraints"
    sbatch = ("sbatch", "--parsable", "-o", "/dev/null", "-t1", "-N1-3", "--exclusive")
    wrong = cluster.process("env", f"{variable}=prime", *sbatch, "--wrap", "true")
    assert wrong.returncode != 0
    assert "node-constraints" in wrong.stderr
    assert not cluster.queue()
    right = cluster.run("env", f"{variable}=pof2", *sbatch, "--wrap", "true")
    assert len(nodes_of(cluster, right)) == 2


def test_srun_and_salloc_take_the_options_too(cluster: Cluster) -> None:
    out = cluster.run("srun", "-N1-3", "--exclusive", "--node-constraints=pof2", "hostname")
    assert len(out.splitlines()) == 2
    bad = cluster.process("srun", "-N1", "--node-constraints=prime", "hostname")
    assert bad.returncode != 0
    assert "node-constraints" in bad.stderr
