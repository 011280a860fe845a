# SPDX-License-Identifier: Apache-2.0
"""What users do with sbatch, srun, salloc and scontrol works as they know it."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.slurm import Cluster, expand

CPUS = 4


def start_s(cluster: Cluster, job_id: str) -> int:
    (record,) = cluster.wait_records([job_id])
    assert record.start_s is not None
    return record.start_s


def test_a_job_runs_where_the_service_said(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t1", run="sleep 4")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch("-N3", "--exclusive", "-t1")
    announced = cluster.wait_for(
        "an announced start",
        lambda: cluster.job(job).get("SchedNodeList", "").removeprefix("(null)"),
    )
    cluster.wait_empty()
    records = {r.job_id: r for r in cluster.assert_sound([blocker, job], cpus_per_node=CPUS)}
    assert sorted(records[job].nodes) == sorted(expand(announced))


def test_a_poisonous_job_stops_no_other(cluster: Cluster) -> None:
    """A start beyond the year 9999, and a name that is not text, are their own users' trouble."""
    poison = cluster.sbatch(
        "-t", "30", "--begin=2029-01-01", "--deadline=2030-01-01", run="true", user="alice"
    )
    cluster.root("scontrol", "update", f"JobId={poison}", "StartTime=9999-12-31T23:50")
    name = "$(printf 'x\\377y')"
    odd = cluster.run("sh", "-c", f'sbatch --parsable -t5 --hold -J "{name}" --wrap true')
    try:
        jobs = [cluster.sbatch("-n1", "-t1", run="true") for _ in range(3)]
        for job in jobs:
            cluster.wait_state(job, "COMPLETED")
        log = cluster.script("logs", "controller").splitlines()
        for job in jobs:
            assert any(f"bridge: start JobId={job} " in line for line in log), job
        assert cluster.process("schedbridge", "plan").returncode == 0
        assert cluster.process("schedbridge", "explain", poison).returncode == 0
    finally:
        cluster.root("scancel", poison, odd)


def test_jobs_start_in_priority_order(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t1", run="sleep 5")
    cluster.wait_state(blocker, "RUNNING")
    jobs = [cluster.sbatch("-N8", "--exclusive", "-t1") for _ in range(3)]
    for job, priority in zip(jobs, (1000, 3000, 2000), strict=True):
        cluster.root("scontrol", "update", f"JobId={job}", f"Priority={priority}")
    cluster.wait_empty()
    cluster.assert_sound([blocker, *jobs], cpus_per_node=CPUS)
    starts = [start_s(cluster, job) for job in jobs]
    assert starts[1] <= starts[2] <= starts[0]


def test_a_backfilled_job_never_delays_the_head(cluster: Cluster) -> None:
    long = cluster.sbatch("-N4", "--exclusive", "-t3", run="sleep 12")
    cluster.wait_state(long, "RUNNING")
    head = cluster.sbatch("-N8", "--exclusive", "-t1")
    promised = cluster.wait_for("a promise", lambda: _promise(cluster, head))
    fits = cluster.sbatch("-N2", "--exclusive", "-t1", run="sleep 2")
    delays = cluster.sbatch("-N2", "--exclusive", "-t10", run="sleep 2")
    cluster.wait_state(fits, "RUNNING", "COMPLETED")
    assert cluster.state(delays) == "PENDING"
    assert _promise(cluster, head) == promised
    cluster.wait_empty()
    cluster.assert_sound([long, head, fits, delays], cpus_per_node=CPUS)
    assert start_s(cluster, head) <= promised
    assert start_s(cluster, head) <= start_s(cluster, delays)


def _promise(cluster: Cluster, job: str) -> int:
    """The announced start, Unix seconds; 0 if there is none."""
    out = cluster.run(
        "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "--start", "-j", job, "-o", "%S"
    )
    return int(out) if out.isdigit() else 0


def test_planned_starts_are_shown_and_kept(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 200")
    cluster.wait_state(blocker, "RUNNING")
    jobs = [cluster.sbatch("-N4", "--exclusive", "-t5") for _ in range(4)]
    first = cluster.wait_for(
        "announced starts of all", lambda: _all([_promise(cluster, job) for job in jobs])
    )
    where = [cluster.job(job)["SchedNodeList"] for job in jobs]
    time.sleep(5)  # several ticks in which nothing changes
    assert [_promise(cluster, job) for job in jobs] == first
    assert [cluster.job(job)["SchedNodeList"] for job in jobs] == where
    assert first[0] == first[1] < first[2] == first[3]
    assert not set(expand(where[0])) & set(expand(where[1]))
    reasons = cluster.run("squeue", "-h", "-t", "PD", "-o", "%i %R")
    assert len(reasons.splitlines()) == 4
    assert "None" not in reasons
    cluster.run("scancel", blocker)


def _all(values: list[int]) -> list[int]:
    return values if all(values) else []


def test_an_array_keeps_its_own_limit(cluster: Cluster) -> None:
    array = cluster.sbatch("--array=0-5%2", "-n1", "-t1", run="sleep 2")
    maximum = 0
    while queue := cluster.queue():
        maximum = max(maximum, sum(state == "RUNNING" for state in queue.values()))
    assert maximum == 2
    tasks = [f"{array}_{task}" for task in range(6)]
    records = cluster.assert_sound(tasks, cpus_per_node=CPUS)
    changes = sorted([(r.start_s, 1) for r in records] + [(r.end_s, -1) for r in records])
    running = 0
    for _, change in changes:
        running += change
        assert running <= 2


def test_a_dependency_chain_runs_in_order(cluster: Cluster) -> None:
    jobs = [cluster.sbatch("-n1", "-t1")]
    for _ in range(3):
        jobs.append(cluster.sbatch("-n1", "-t1", f"--dependency=afterok:{jobs[-1]}"))
    cluster.wait_empty()
    records = cluster.assert_sound(jobs, cpus_per_node=CPUS)
    by_id = {record.job_id: record for record in records}
    for before, after in itertools.pairwise(jobs):
        assert by_id[before].end_s <= by_id[after].start_s


def test_a_dependency_that_fails_is_never_started(cluster: Cluster) -> None:
    failing = cluster.sbatch("-n1", "-t1", run="exit 1")
    job = cluster.sbatch("-n1", "-t1", f"--dependency=afterok:{failing}")
    cluster.wait_state(failing, "FAILED")
    cluster.wait_for(
        "the reason", lambda: "Dependency" in cluster.run("squeue", "-h", "-j", job, "-o", "%r")
    )
    cluster.run("scancel", job)


def test_a_begin_time_is_kept(cluster: Cluster) -> None:
    job = cluster.sbatch("-n1", "-t1", "--begin=now+6")
    earliest = int(time.time()) + 4
    assert cluster.state(job) == "PENDING"
    cluster.wait_empty()
    cluster.assert_sound([job], cpus_per_node=CPUS)
    assert start_s(cluster, job) >= earliest


def test_hold_and_release(cluster: Cluster) -> None:
    job = cluster.sbatch("-n1", "-t1", "--hold")
    time.sleep(2)
    assert cluster.state(job) == "PENDING"
    cluster.run("scontrol", "release", job)
    cluster.wait_empty()
    cluster.assert_sound([job], cpus_per_node=CPUS)


def test_a_cancelled_job_leaves_and_others_move_up(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t10", run="sleep 60")
    cluster.wait_state(blocker, "RUNNING")
    first = cluster.sbatch("-N8", "--exclusive", "-t10")
    second = cluster.sbatch("-N8", "--exclusive", "-t10")
    before = cluster.wait_for("a promise", lambda: _promise(cluster, second))
    cluster.run("scancel", first)
    cluster.wait_for("an earlier promise", lambda: 0 < _promise(cluster, second) < before)
    cluster.run("scancel", blocker)
    cluster.wait_empty()
    cluster.assert_sound([second], cpus_per_node=CPUS)


def test_a_drained_node_is_avoided_and_used_again(cluster: Cluster) -> None:
    node = cluster.run("sinfo", "-N", "-h", "-o", "%N").splitlines()[0]
    cluster.root("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    whole = cluster.sbatch("-N8", "--exclusive", "-t1")
    rest = cluster.sbatch("-N7", "--exclusive", "-t1")
    cluster.wait_state(rest, "COMPLETED")
    assert cluster.state(whole) == "PENDING"
    cluster.root("scontrol", "update", f"NodeName={node}", "State=RESUME")
    cluster.wait_empty()
    records = {r.job_id: r for r in cluster.assert_sound([whole, rest], cpus_per_node=CPUS)}
    assert node not in records[rest].nodes


def test_a_lost_node_requeues_its_job_and_the_rest_goes_on(cluster: Cluster) -> None:
    """A slurmd dies and its node is declared down: Slurm requeues, the bridge starts elsewhere."""
    job = cluster.sbatch("-N1", "--exclusive", "--requeue", "-t5", run="sleep 8")
    cluster.wait_state(job, "RUNNING")
    (node,) = expand(cluster.job(job)["NodeList"])
    cluster.script("kill", "node", node)
    try:
        # Drained, too: an answer that was under way when it died would bring it back to service.
        for state in ("DRAIN", "DOWN"):
            cluster.root("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=lost")
        # Elsewhere at once: on the same node Slurm would wait out the old credential's life.
        cluster.root("scontrol", "update", f"JobId={job}", "StartTime=now", f"ExcNodeList={node}")
        others = [cluster.sbatch("-N1", "--exclusive", "-t1") for _ in range(3)]
        cluster.wait_empty(180)
        jobs = [job, *others]
        records = cluster.assert_sound(jobs, cpus_per_node=CPUS, requeued=[job])
        mine = [record.nodes for record in records if record.job_id == job]
        assert mine[0] == (node,)
        assert mine[-1] != (node,)
    finally:
        cluster.script("restart", "node", node)


def test_requeue(cluster: Cluster) -> None:
    job = cluster.sbatch("-n1", "--requeue", "-t5", run="sleep 3")
    cluster.wait_state(job, "RUNNING")
    cluster.root("scontrol", "requeue", job)
    cluster.wait_state(job, "PENDING")
    cluster.root("scontrol", "update", f"JobId={job}", "StartTime=now")
    cluster.wait_empty(180)
    cluster.assert_sound([job], cpus_per_node=CPUS, requeued=[job])


def test_a_reservation_is_kept_and_used(cluster: Cluster) -> None:
    nodes = cluster.run("sinfo", "-N", "-h", "-o", "%N").splitlines()
    kept = sorted(set(nodes))[:2]
    cluster.root(
        "scontrol", "create", "reservation", "ReservationName=course", "Users=alice",
        "StartTime=now", "Duration=10", f"Nodes={','.join(kept)}",
    )  # fmt: skip
    try:
        inside = cluster.sbatch("-N2", "-t1", "--reservation=course", user="alice")
        outside = [cluster.sbatch("-N2", "--exclusive", "-t1") for _ in range(3)]
        too_wide = cluster.sbatch("-N7", "--exclusive", "-t1")
        for job in (inside, *outside):
            cluster.wait_state(job, "COMPLETED")
        assert cluster.state(too_wide) == "PENDING"
        jobs = [inside, *outside]
        records = {r.job_id: r for r in cluster.assert_sound(jobs, cpus_per_node=CPUS)}
        assert sorted(records[inside].nodes) == kept
        for job in outside:
            assert not set(records[job].nodes) & set(kept)
    finally:
        cluster.root("scontrol", "delete", "ReservationName=course")
    cluster.wait_empty()
    cluster.assert_sound([too_wide], cpus_per_node=CPUS)


def test_licences_are_never_oversubscribed(cluster: Cluster) -> None:
    total = int(cluster.run("scontrol", "show", "licenses", "-o").split("Total=")[1].split()[0])
    name = cluster.run("scontrol", "show", "licenses", "-o").split("LicenseName=")[1].split()[0]
    each = total // 2 + 1
    jobs = [cluster.sbatch("-n1", "-t1", "-L", f"{name}:{each}", run="sleep 2") for _ in range(3)]
    cluster.wait_for(
        "the reason",
        lambda: "icen" in cluster.run("squeue", "-h", "-t", "PD", "-o", "%R"),
    )
    cluster.wait_empty()
    records = sorted(
        cluster.assert_sound(jobs, cpus_per_node=CPUS), key=lambda record: record.start_s or 0
    )
    for before, after in itertools.pairwise(records):
        assert before.end_s <= after.start_s


def test_an_account_limit_is_kept(cluster: Cluster) -> None:
    """GrpTRES of the account: four CPUs at a time, whatever is free."""
    cluster.root("sacctmgr", "-i", "add", "account", "small", "GrpTRES=cpu=4")
    cluster.root("sacctmgr", "-i", "add", "user", "bob", "account=small")
    jobs = [
        cluster.sbatch("-A", "small", "-n2", "-t1", run="sleep 2", user="bob") for _ in range(5)
    ]
    cluster.wait_for(
        "the limit's reason",
        lambda: "Assoc" in cluster.run("squeue", "-h", "-t", "PD", "-o", "%r %R"),
    )
    cluster.wait_empty(180)
    records = cluster.assert_sound(jobs, cpus_per_node=CPUS)
    changes = sorted([(r.start_s, r.cpus) for r in records] + [(r.end_s, -r.cpus) for r in records])
    used = 0
    for _, change in changes:
        used += change
        assert used <= 4


def test_srun_and_salloc(cluster: Cluster) -> None:
    assert len(cluster.run("srun", "-N2", "-t1", "hostname").splitlines()) == 2
    assert cluster.run("salloc", "-Q", "-n1", "-t1", "srun", "hostname")


def test_srun_waits_for_its_turn(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t1", run="sleep 3")
    cluster.wait_state(blocker, "RUNNING")
    assert cluster.run("srun", "-N1", "--exclusive", "-t1", "hostname")
    cluster.wait_empty()
    cluster.assert_sound([blocker], cpus_per_node=CPUS)


def test_several_partitions_start_where_there_is_room(cluster: Cluster) -> None:
    names = cluster.run("sinfo", "-h", "-o", "%R").split()
    if len(set(names)) < 2:
        pytest.fail("the test cluster should have several partitions")
    job = cluster.sbatch("-n1", "-t1", "-p", ",".join(sorted(set(names))))
    cluster.wait_empty()
    cluster.assert_sound([job], cpus_per_node=CPUS)


def test_shared_nodes_and_memory(cluster: Cluster) -> None:
    """Sixteen one-CPU jobs share four nodes' worth of CPUs; none is oversubscribed."""
    jobs = [cluster.sbatch("-n1", "-t1", "--mem=100", run="sleep 2") for _ in range(16)]
    cluster.wait_empty()
    cluster.assert_sound(jobs, cpus_per_node=CPUS)


def test_explain_says_why_a_job_waits(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 200")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.sbatch("-N8", "--exclusive", "-t1")
    cluster.wait_for("a promise", lambda: _promise(cluster, job))
    text = cluster.wait_for(
        "an answer", lambda: cluster.process("schedbridge", "explain", job).stdout
    )
    cluster.run("scancel", job, blocker)
    assert "8 nodes" in text
    assert blocker in text


@contextmanager
def partition(cluster: Cluster, name: str, *settings: str) -> Iterator[None]:
    cluster.root("scontrol", "create", f"PartitionName={name}", "MaxTime=INFINITE", *settings)
    try:
        yield
    finally:
        cluster.root("sh", "-c", f"squeue -h -p {name} -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()
        cluster.root("scontrol", "delete", f"PartitionName={name}")


def running(cluster: Cluster, name: str) -> int:
    return len(cluster.run("squeue", "-h", "-r", "-t", "R", "-p", name, "-o", "%A").split())


def test_an_array_where_cpus_are_shared_starts_at_once(cluster: Cluster) -> None:
    """The planner knows half of the places: Slurm is asked for the others, task by task."""
    with partition(cluster, "twice", "Nodes=n1", "OverSubscribe=YES:2"):
        cluster.sbatch("-p", "twice", "-s", "-a1-9", "--mem=1", "-t5", run="sleep 60")
        cluster.wait_for("two tasks on each CPU", lambda: running(cluster, "twice") == 8, 15)
