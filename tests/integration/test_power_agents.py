# SPDX-License-Identifier: Apache-2.0
"""Watts on a real cluster: a test writes the nodes' meters, Slurm and the agents read them."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.recording.recordings import decode
from tests.integration.slurm import KEEP, Cluster

CLUSTER = "sbwatts"
NODES = ("n1", "n2")
CONFIG = Path(__file__).parents[2] / "slurm_conf" / "bridge.yaml"
PLANNING = """
planning:
  power:
    nodes: [{name: all, idle: 71W, max: 250W}]
    corridor: [{upper: 10kW}]
"""
PAGE = (
    "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9618/metrics').read().decode())"
)


class Meters:
    """The nodes' /sys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for node in NODES:
            for below in ("cray/pm_counters", "fs/cgroup", "devices"):
                (folder / node / below).mkdir(parents=True)
            self.shows(node, 80)

    def shows(self, node: str, watts: int) -> None:
        counters = self.folder / node / "cray" / "pm_counters"
        (counters / "energy").write_text("1234 J 17 us\n")
        (counters / "power").write_text(f"{watts} W 17 us\n")


@pytest.fixture(scope="module")
def meters(tmp_path_factory: pytest.TempPathFactory) -> Meters:
    return Meters(tmp_path_factory.mktemp("sys"))


@pytest.fixture(scope="module")
def metered(meters: Meters) -> Iterator[Cluster]:
    assert not KEEP, "the meters are gone when the tests are over: run without KEEP_CLUSTER"
    file = meters.folder / "bridge.yaml"
    file.write_text(CONFIG.read_text() + PLANNING)
    cluster = Cluster(
        CLUSTER, "--nodes", "2", "--containers", "2", "--cpus", "2", "--agents",
        "--service-config", str(file), "--power-files", str(meters.folder),
        "--set", "AcctGatherEnergyType=acct_gather_energy/pm_counters",
        "--set", "AcctGatherNodeFreq=1",
    )  # fmt: skip
    cluster.up()
    yield cluster
    cluster.down()


def metric(cluster: Cluster, name: str) -> float:
    page = cluster.inside("service", "sh", "-c", f'$(ls /opt/*/bin/python | head -1) -c "{PAGE}"')
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def measured(cluster: Cluster) -> dict[str, tuple[int, int]]:
    """What the next cycle knows of the running jobs."""
    record = "schedbridge lab record --out /tmp/r --cycles 1 --min-queue 0 >&2"
    words = f"rm -rf /tmp/r; {record}; base64 /tmp/r/*"
    raw = base64.b64decode(cluster.inside("service", "sh", "-c", words))
    running = decode(raw).snapshot.running
    pairs = zip(running.measured_min_power_w, running.measured_max_power_w, strict=True)
    return {job: (int(low), int(high)) for job, (low, high) in zip(running.id, pairs, strict=True)}


def test_slurm_and_the_agents_read_the_same_meter(meters: Meters, metered: Cluster) -> None:
    meters.shows("n1", 92)
    metered.wait_for(
        "Slurm's watts", lambda: "CurrentWatts=92 " in metered.run("scontrol", "show", "node", "n1")
    )
    metered.wait_for("both nodes", lambda: metric(metered, "schedbridge_power_nodes") == 2)
    assert metric(metered, "schedbridge_power_nodes_stale") == 0


def test_a_job_is_planned_with_what_it_draws(meters: Meters, metered: Cluster) -> None:
    job = metered.sbatch("-N1", "-wn1", "--exclusive", "-t10", run="sleep 1000")
    metered.wait_state(job, "RUNNING")
    meters.shows("n1", 180)
    metered.wait_for("its power", lambda: measured(metered).get(job) == (180, 180), 120)
    metered.root("scancel", job)


def test_a_meter_that_lies_is_refused_and_the_node_ages(meters: Meters, metered: Cluster) -> None:
    refused = 'schedbridge_power_refusals_total{agent="n2",reason="range"}'
    before = metric(metered, refused)
    meters.shows("n2", 5000)
    metered.wait_for("the refusal", lambda: metric(metered, refused) > before)
    metered.wait_for("its age", lambda: metric(metered, "schedbridge_power_nodes_stale") == 1)
    meters.shows("n2", 90)
    metered.wait_for("its return", lambda: metric(metered, "schedbridge_power_nodes_stale") == 0)


def test_an_agent_is_small_and_runs_before_its_jobs(metered: Cluster) -> None:
    words = "p=$(cat /run/slurm/agent.pid); ps -o ni=,rss= -p $p"
    nice, rss_kib = map(int, metered.inside("n1", "sh", "-c", words).split())
    assert nice == -10
    assert rss_kib < 60 << 10
