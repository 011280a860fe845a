# SPDX-License-Identifier: Apache-2.0
"""Dispatchers, predictors, placement and recordings on a real cluster."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from tests.integration.slurm import Cluster, expand
from tests.integration.test_openccs import announced_s


@contextmanager
def policy(cluster: Cluster, **stages: object) -> Iterator[None]:
    text = json.dumps(stages)
    cluster.inside("service", "sh", "-c", f"echo '{text}' > /tmp/policy.yaml")
    cluster.inside("service", "schedbridge", "policy", "set", "/tmp/policy.yaml")
    try:
        yield
    finally:
        cluster.inside("service", "schedbridge", "policy", "set", "slurm-like")


def metric(cluster: Cluster, name: str) -> dict[str, float]:
    """Samples of a metric by their labels."""
    code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9618/metrics').read().decode())"
    text = cluster.inside("service", "sh", "-c", f'$(ls /opt/*/bin/python | head -1) -c "{code}"')
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, flags=re.MULTILINE)
    return {labels: float(value) for labels, value in found}


@pytest.mark.parametrize("preset", ["search", "pcp20", "hcp19", "pcp19"])
def test_a_queue_is_dispatched_and_every_job_runs(cluster: Cluster, preset: str) -> None:
    """Long jobs submitted before short ones behind a full cluster: whoever plans, all run once."""
    with policy(cluster, preset=preset):
        asked = sum(
            sum(metric(cluster, f"schedbridge_solver_{what}_total").values())
            for what in ("plans", "fallbacks")
        )
        blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 300")
        cluster.wait_state(blocker, "RUNNING")
        jobs = [
            cluster.sbatch(f"-N{nodes}", "--exclusive", f"-t{minutes}", run="sleep 2")
            for nodes, minutes in [(4, 60), (3, 50), (5, 40), (2, 5), (1, 3), (1, 2)]
        ]
        jobs += [cluster.sbatch("-N1", "-n3", "-t2", run="sleep 2") for _ in range(4)]
        assert all(announced_s(cluster, job) > 0 for job in jobs)
        assert f"policy {preset}" in " ".join(cluster.run("schedbridge", "status").split())
        answered = sum(
            sum(metric(cluster, f"schedbridge_solver_{what}_total").values())
            for what in ("plans", "fallbacks")
        )
        assert answered > asked
        cluster.run("scancel", blocker)
        cluster.wait_empty(120)
        cluster.assert_sound(jobs, cpus_per_node=4, unjudged=[blocker])


@pytest.mark.parametrize("preset", ["pcp19", "hcp19", "pcp20", "search"])
def test_the_solver_s_plan_serves_where_it_is_better(cluster: Cluster, preset: str) -> None:
    """Two jobs fit beside each other for a little longer than the one that stands first.

    Largest slowdown first, and first come, too, is that one; each metric is of this policy alone.
    """
    window = {} if preset == "search" else {"startable": False}  # the cluster is full at first
    plan = {"budget_ms": 5000, **window}
    with policy(cluster, preset=preset, plan=plan, order="fcfs"):
        before = sum(metric(cluster, "schedbridge_solver_plans_total").values())
        blocker = cluster.sbatch("-N8", "--exclusive", "-t300", run="sleep 600")
        cluster.wait_state(blocker, "RUNNING")
        first = cluster.sbatch("-N6", "--exclusive", "-t10", run="sleep 2")
        two = [cluster.sbatch("-N4", "--exclusive", "-t11", run="sleep 2") for _ in range(2)]

        def served() -> bool:
            plans = sum(metric(cluster, "schedbridge_solver_plans_total").values())
            return plans > before and all(
                announced_s(cluster, job) < announced_s(cluster, first) for job in two
            )

        cluster.wait_for("the solver's plan", served)
        told = cluster.run("schedbridge", "status")
        assert "fell back" not in told
        assert metric(cluster, "schedbridge_solver_saved_ratio")[""] > 0
        cluster.run("scancel", blocker)
        cluster.wait_empty(120)
        cluster.assert_sound([first, *two], cpus_per_node=4, unjudged=[blocker])


def test_the_solver_saves_where_long_jobs_stand_before_short_ones(cluster: Cluster) -> None:
    """First come, first served is the worst order here; the gap is told in the metrics."""
    with policy(cluster, preset="hcp19", order="fcfs", plan={"startable": False}):
        before = metric(cluster, "schedbridge_solver_plans_total")
        blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 300")
        cluster.wait_state(blocker, "RUNNING")
        long = cluster.sbatch("-N8", "--exclusive", "-t600", run="sleep 2")
        short = [cluster.sbatch("-N8", "--exclusive", "-t1", run="sleep 2") for _ in range(3)]
        cluster.wait_for(
            "short jobs announced before the long one",
            lambda: max(announced_s(cluster, job) for job in short) < announced_s(cluster, long),
        )
        assert sum(metric(cluster, "schedbridge_solver_plans_total").values()) > sum(
            before.values()
        )
        assert 0 <= metric(cluster, "schedbridge_solver_gap")[""] <= 1
        cluster.run("scancel", blocker, long)
        cluster.wait_empty(60)


def test_predicted_run_times_are_learnt_and_announced(cluster: Cluster) -> None:
    """After two short runs under long limits nobody is told to wait for the limit."""
    with policy(cluster, preset="slurm-like", predict="last-two"):
        for _ in range(2):
            job = cluster.sbatch("-n1", "-t30", "-J", "habit", run="sleep 3")
            cluster.wait_state(job, "COMPLETED")
        running = cluster.sbatch("-N8", "--exclusive", "-t30", "-J", "habit", run="sleep 20")
        cluster.wait_state(running, "RUNNING")
        waiting = cluster.sbatch("-N8", "--exclusive", "-t30", "-J", "habit", run="sleep 1")
        assert announced_s(cluster, waiting) < time.time() + 600
        assert cluster.job(running)["TimeLimit"] == "00:30:00"
        cluster.wait_state(waiting, "COMPLETED")


TOPOLOGY = """
SwitchName=left Nodes=n[1-4]
SwitchName=right Nodes=n[5-8]
SwitchName=top Switches=left,right
"""


@pytest.fixture
def switched(cluster: Cluster) -> Iterator[Cluster]:
    """The service knows two switches of four nodes."""
    config = "/etc/schedbridge/bridge.yaml"
    kept = cluster.inside("service", "cat", config)
    file = "/etc/schedbridge/topology.conf"
    cluster.inside("service", "sh", "-c", f"echo '{TOPOLOGY}' > {file}")
    cluster.inside("service", "sh", "-c", f"echo 'topology: {file}' >> {config}")
    cluster.script("restart", "service")
    yield cluster
    cluster.inside("service", "sh", "-c", f"cat > {config} <<'EOF'\n{kept}\nEOF")
    cluster.script("restart", "service")


def test_a_job_sits_below_one_switch(switched: Cluster) -> None:
    """n1 is busy: the first four free nodes are of both switches, the four of `right` of one."""
    with policy(switched, preset="slurm-like", place="compact"):
        switched.wait_for("the policy", lambda: "compact" in switched.run("schedbridge", "status"))
        small = switched.sbatch("-N1", "-w", "n1", "--exclusive", "-t5", run="sleep 60")
        switched.wait_state(small, "RUNNING")
        job = switched.sbatch("-N4", "--exclusive", "-t5", run="sleep 60")
        switched.wait_state(job, "RUNNING")
        assert expand(switched.job(job)["NodeList"]) == ["n5", "n6", "n7", "n8"]
        hops = metric(switched, "schedbridge_hops_total")
        assert 0 < hops['when="after"'] < hops['when="before"']
        switched.run("scancel", small, job)


@pytest.mark.parametrize("placer", ["annealing", "neural"])
def test_jobs_start_together_at_the_ends_of_periods(switched: Cluster, placer: str) -> None:
    """Two of four nodes each: whoever starts in a window, each has a switch to itself."""
    period_s = 6
    with policy(switched, preset=f"tjap-{placer}", plan={"period_s": period_s}):
        told = f"window+{placer}"
        switched.wait_for("the policy", lambda: told in switched.run("schedbridge", "status"))
        jobs = [switched.sbatch("-N4", "--exclusive", "-t5", run="sleep 60") for _ in range(2)]
        for job in jobs:
            switched.wait_state(job, "RUNNING")
        held = {tuple(expand(switched.job(job)["NodeList"])) for job in jobs}
        assert held == {("n1", "n2", "n3", "n4"), ("n5", "n6", "n7", "n8")}
        for job in jobs:
            started = datetime.fromisoformat(switched.job(job)["StartTime"])
            assert started.second % period_s <= 1  # a minute has whole periods
        switched.run("scancel", *jobs)
        switched.wait_empty(60)


def test_a_living_cycle_is_recorded_and_planned_again(cluster: Cluster) -> None:
    blocker = cluster.sbatch("-N8", "--exclusive", "-t5", run="sleep 300")
    cluster.wait_state(blocker, "RUNNING")
    jobs = [cluster.sbatch("-N2", "--exclusive", "-t2", run="true") for _ in range(3)]
    assert all(announced_s(cluster, job) for job in jobs)
    out = "/tmp/recorded"
    cluster.inside("service", "rm", "-rf", out)
    cluster.inside("service", "schedbridge", "lab", "record", "--out", out, "--cycles", "1")
    files = cluster.inside("service", "sh", "-c", f"ls {out}/*.cycle.json.gz").split()
    assert len(files) == 1
    again = cluster.inside("service", "schedbridge", "lab", "replay", files[0])
    assert "3" in again
    told = cluster.inside(
        "service", "schedbridge", "lab", "replay", files[0], "--policy", "search", "--json"
    )
    assert json.loads(told)
    refused = cluster.process("schedbridge", "lab", "record", "--out", "/tmp/mine", "--cycles", "1")
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    cluster.run("scancel", blocker)
    cluster.wait_empty(60)
