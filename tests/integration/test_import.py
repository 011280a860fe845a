# SPDX-License-Identifier: Apache-2.0
"""`lab import` on a real cluster with accounting: every kind of job, and its simulation."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.main import main
from bridge.lab.accounting import site_commands
from bridge.lab.sim.workloads.reading import read_workload
from bridge.lab.sim.workloads.records.job_record import JobEnding
from bridge.lab.sim.workloads.records.record_file import read_site_workload
from bridge.lab.sim.workloads.system import read_system
from tests.integration.slurm import Cluster


@pytest.fixture
def commands_of_the_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Slurm's commands run on the cluster, whose times are in UTC."""

    def run(*command: str) -> bytes:
        return cluster.root(*command).encode() + b"\n"

    monkeypatch.setattr(site_commands, "_run", run)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def schedbridge(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main([*map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("commands_of_the_cluster")
def test_jobs_of_all_kinds_are_imported_as_accounted_and_simulated(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    since = cluster.run("date", "+%Y-%m-%dT%H:%M:%S")
    first = cluster.sbatch("-n2", "-N1", "--mem=300", "-t5", "-J", "plain")
    array = cluster.sbatch("--array=1-3%2", "-t2", "-C", "fast")
    after = cluster.sbatch("-d", f"afterok:{first}", "--exclusive", "-t1", user="alice")
    spread = cluster.sbatch("-n6", "--mem-per-cpu=100", "-p", "left", "-t3", user="alice")
    cluster.root("scontrol", "update", "nodename=n8", "state=drain", "reason=a word about somebody")
    cluster.wait_empty()
    cluster.root("scontrol", "update", "nodename=n8", "state=resume")
    jobs = (first, after, spread, *(f"{array}_{task}" for task in (1, 2, 3)))

    def accounted() -> bool:
        text = cluster.root("sacct", "-aXn", "-S", since, "--parsable2", "-o", "JobID,State,End")
        ended = {line.split("|")[0] for line in text.splitlines() if "Unknown" not in line}
        return set(jobs) <= ended

    cluster.wait_for("jobs in accounting", accounted)
    read = {}
    system, workload = tmp_path / "system.yaml", tmp_path / "a.workload.jsonl"
    for reader in ("json", "table"):
        told = schedbridge(
            capsys, "lab", "import", "--reader", reader, "--since", since, "--out", workload,
            "--system-out", system, "--force",
        )  # fmt: skip
        assert told["unreadable_entries"] == 0
        site = read_site_workload(workload)
        read[reader] = {job.id: job for job in site.jobs}
    # As sacct says.
    rows = cluster.root(
        "sacct", "-aXn", "-S", since, "--parsable2", "-o", "JobID,AllocCPUS,ElapsedRaw,NodeList"
    )
    for imported in read.values():
        for line in rows.splitlines():
            name, cpus, elapsed, nodes = line.split("|")
            if name in jobs:
                job = imported[name]
                assert (job.cpus, job.runtime_s, job.node_list) == (int(cpus), int(elapsed), nodes)
        assert (imported[first].memory_mib, imported[first].memory_per) == (300, "node")
        assert (imported[spread].memory_mib, imported[spread].memory_per) == (100, "cpu")
        assert (imported[spread].partitions, imported[spread].least_nodes) == (("left",), 1)
        assert imported[after].after == (("afterok", first),)
        assert imported[after].exclusive
        task = imported[f"{array}_3"]
        assert (task.array, task.array_limit, task.features) == (array, 2, "fast")
        assert imported[first].state is JobEnding.COMPLETED
        assert imported[first].user.startswith("user-")
    assert read["json"][first].user != read["table"][first].user  # each with its own secret
    assert any(each.nodes == "n8" and each.state == "drained" for each in site.outages)
    assert "somebody" not in workload.read_text()
    # And simulated.
    machine = read_system(system)
    assert (len(machine.nodes), machine.processors) == (8, 32)
    assert {part.name for part in machine.partitions} == {"main", "left", "right"}
    found = read_workload(workload, machine).workload
    assert set(jobs) <= set(found.id.tolist())
    assert found.after is not None
    (result,) = schedbridge(capsys, "lab", "simulate", workload, "--system", system)["results"]
    assert (result["unfinished"], result["refusals"], result["jobs"]) == (0, 0, len(found))
