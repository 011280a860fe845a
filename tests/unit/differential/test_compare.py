# SPDX-License-Identifier: Apache-2.0
"""What counts as a difference between two clusters, and what does not."""

from dataclasses import replace

import pytest

from tests.differential.cases import Case, Submission
from tests.differential.compare import Job, Kind, Outcome, compare, must_say, verdict, words_of
from tests.differential.run import Row, held
from tests.differential.table import counts, differences, markdown

RUNS = Job("RUNNING", nodes=2, cpus=8, placement="n[1-2]", tres="mem=2G", started_s=0.1)
WAITS = Job("PENDING", reason="Resources")


def kinds(stock, bridge, **how):
    return [finding.kind for finding in compare(_outcome(stock), _outcome(bridge), **how)]


def _outcome(jobs):
    return Outcome(said=((0, "Submitted batch job N"),), jobs=tuple(jobs))


def test_the_same_is_no_finding():
    assert kinds([RUNS, WAITS], [RUNS, WAITS]) == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"nodes": 3}, Kind.NODES),
        ({"cpus": 4}, Kind.CPUS),
        ({"tres": "mem=1G"}, Kind.TRES),
        ({"started_s": 5.0}, Kind.LATE),
        ({"state": "FAILED"}, Kind.STATE),
        ({"state": "PENDING"}, Kind.WAITS),
    ],
)
def test_a_job_that_fares_otherwise(change, kind):
    assert kinds([RUNS], [replace(RUNS, **change)]) == [kind]
    assert kinds([RUNS], [replace(RUNS, **change)], ignore=(kind.value,)) == []


def test_which_task_of_an_array_got_which_nodes_is_no_difference():
    wide, narrow = replace(RUNS, array=0), replace(RUNS, array=0, nodes=1, placement="n5")
    waits = replace(WAITS, array=0)
    assert kinds([wide, narrow, waits], [narrow, wide, waits], placement=True) == []
    elsewhere = replace(narrow, placement="n6")
    assert kinds([wide, narrow], [elsewhere, wide]) == []
    assert kinds([wide, narrow], [elsewhere, wide], placement=True) == [Kind.PLACEMENT]
    assert kinds([wide, narrow], [wide, wide]) == [Kind.NODES]
    assert kinds([wide, waits], [waits, waits]) == [Kind.WAITS]
    one, other = replace(RUNS, nodes=1), replace(RUNS, nodes=2)
    assert kinds([one, other], [other, one]) == [Kind.NODES, Kind.NODES]
    failed = [replace(RUNS, array=0, state="FAILED", exit_code=code) for code in ("1:0", "2:0")]
    assert kinds(failed, failed[::-1]) == [Kind.STATE, Kind.STATE]


def test_a_start_that_stock_refuses_counts():
    assert kinds([WAITS], [RUNS]) == [Kind.STARTS]


def test_nodes_by_name_count_where_they_are_determined():
    other = replace(RUNS, placement="n[3-4]")
    assert kinds([RUNS], [other]) == []
    assert kinds([RUNS], [other], placement=True) == [Kind.PLACEMENT]


def test_a_job_that_has_ended_meanwhile_is_no_difference():
    assert kinds([RUNS], [replace(RUNS, state="COMPLETED", exit_code="0:0")]) == []
    ended = replace(RUNS, state="COMPLETED", exit_code="0:0")
    assert kinds([ended], [replace(ended, exit_code="3:0")]) == [Kind.STATE]


def test_a_little_later_is_no_difference():
    assert kinds([RUNS], [replace(RUNS, started_s=2.9)]) == []
    assert kinds([replace(RUNS, started_s=9.0)], [RUNS]) == []


@pytest.mark.parametrize(
    ("stock", "bridge", "differs"),
    [
        ("Resources", "needs 2 nodes of main, 1 free now", False),
        ("Priority", "Resources", False),
        ("ReqNodeNotAvail, UnavailableNodes:n2", "only 1 is up", False),
        ("ReqNodeNotAvail, Reserved for maintenance", "a reservation begins", True),
        ("ReqNodeNotAvail, May be reserved for other job", "needs 2 nodes, only 1 is up", False),
        ("Nodes required for job are DOWN, DRAINED or reserved", "only 1 is up", False),
        ("Dependency", "waits for 12", True),
        ("QOSMaxNodePerJobLimit", "QOSMaxNodePerJobLimit", False),
    ],
)
def test_reasons_for_which_slurm_has_a_word(stock, bridge, differs):
    found = kinds([replace(WAITS, reason=stock)], [replace(WAITS, reason=bridge)])
    assert found == ([Kind.REASON] if differs else [])
    assert must_say("Licenses")


def test_nodes_that_must_follow_each_other():
    apart = replace(RUNS, placement="n[1,5]")
    assert kinds([RUNS], [RUNS], contiguous=True) == []
    assert kinds([RUNS], [apart], contiguous=True) == [Kind.PLACEMENT]


def test_a_reason_that_must_tell_more():
    told = replace(WAITS, reason="n8 is in use until 12:00")
    assert kinds([WAITS], [told], says="n8") == []
    assert kinds([WAITS], [WAITS], says="n8") == [Kind.REASON]


def test_words_without_numbers_of_jobs_and_what_depends_on_the_moment():
    text = "srun: job 12 queued and waiting for resources\nsbatch: error: no -N3\nbatch job 12\n"
    assert words_of("Job 7 to start at 2026-11-22T14:38:51") == "Job N to start at TIME"
    assert words_of(text) == "batch job N / sbatch: error: no -N3"


def test_submissions_and_counts_of_jobs():
    taken, refused = Outcome(said=((0, ""),), jobs=(RUNS,)), Outcome(said=((1, "no"),))
    assert [f.kind for f in compare(taken, refused)] == [Kind.SUBMISSION, Kind.JOBS]
    failed = Outcome(failed="a filler waits")
    assert [f.kind for f in compare(taken, failed)] == [Kind.PREPARATION]


def test_the_verdict_and_the_table():
    case = Case("a | b", "sizes", (Submission("sbatch -N2"),))
    pair = (_outcome([RUNS]), _outcome([WAITS]))
    found = tuple(compare(*pair))
    rows = [
        Row(case, (pair,), found),
        Row(replace(case, by_design="fewer nodes"), (pair,), found),
        Row(replace(case, unsupported="srun -I"), (pair,), found),
        Row(case, (pair,), ()),
        Row(case, (), (), "no cluster"),
    ]
    assert [row.verdict for row in rows] == [
        "worse", "by design", "unsupported", "same", "broken"
    ]  # fmt: skip
    assert verdict([], by_design="fewer nodes") == "same"
    told = [row.as_dict() for row in rows]
    assert counts(told)["total"] == 5
    told[0]["run"] = "2026-01-02 at commit abc"
    page = markdown(told, wanting=7)
    assert differences(told).count("[worse]") == 1
    assert "a \\| b" in page
    assert "| by design |" in page
    assert "7 cases have not been run yet" in page
    assert "Run: 1 cases 2026-01-02 at commit abc; 4 cases at a time not kept." in page


def test_many_alike_jobs_are_told_once():
    assert str(_outcome([WAITS] * 3 + [RUNS])).startswith("3 x waits: Resources; running")


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        ("JobId=1 NumNodes=1", ""),
        ("JOB_GRES=(null) Nodes=n5 CPU_IDs=0-1 Mem=512 GRES= MinMemoryCPU=256M", "mem=512"),
        (
            "JOB_GRES=gpu:a100:4,gpu:v100:2,gpu:1   Nodes=n[13-14] CPU_IDs=0 Mem=256 GRES="
            "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)   Nodes=n15 CPU_IDs=0 Mem=100 GRES=gpu:1(IDX:0)",
            "gpu=7,mem=612",
        ),
        ("JOB_GRES=scratch:3,bandwidth:lustre:2K Nodes=n16", "bandwidth=2048,scratch=3"),
    ],
)
def test_devices_are_counted_on_all_nodes(detail, told):
    assert held(detail) == told
