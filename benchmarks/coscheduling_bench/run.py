# SPDX-License-Identifier: Apache-2.0
"""One set of workflows under one policy: submits it, waits for it, reads logs and results."""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster_bench.batch import (
    ENDED,
    STARTED,
    Ran,
    common_figures,
    nodes_of,
    outputs,
    read_log,
    wait_done,
)
from cluster_bench.meters import load_between
from cluster_bench.stand import ROOT, BenchError, Stand
from elastic_bench.steps import instant_s

from coscheduling_bench.nodes import Nodes
from coscheduling_bench.workload import StageJob, Workflow, sbatch_options

_WORKLOADS = ROOT / "examples" / "workloads"
_SUBMIT = """
import json, pathlib, subprocess, sys, time
for number, words, options in json.load(sys.stdin):
    folder = pathlib.Path("flows", str(number))
    folder.mkdir(parents=True)
    called = time.time()
    command = ["python3", "workloads/workflow.py", "submit", *words, "--folder", str(folder)]
    done = subprocess.run([*command, "--", *options], text=True, capture_output=True)
    if done.returncode: sys.exit(f"{command}: {done.stderr}")
    for line in done.stdout.splitlines(): print(number, called, *line.split())
"""
_READ = 'for file in flows/*/*.out; do echo "== $file"; cat "$file"; done'
_REQUEUED = re.compile(
    r"^\[(?P<at>[^\]]+)\] bridge: requeue JobId=(?P<job>\d+), the guest of JobId=(?P<host>\d+)"
)


@dataclass
class Stay:
    """A job on its nodes, from one start to its end or requeue; seconds since 1970.

    Attributes:
        nodes: that it holds.
        hosts: jobs that were there when it started; it is their guest.
    """

    job_id: str
    start_s: float
    nodes: frozenset[str]
    hosts: tuple[str, ...]
    end_s: float = 0.0
    requeued: bool = False


@dataclass
class Shared:
    """Who shared nodes with whom.

    Attributes:
        stays: all of them.
        hosts: jobs that had a guest.
    """

    stays: list[Stay] = field(default_factory=list)

    @property
    def guests(self) -> list[Stay]:
        """The stays that began beside another job."""
        return [stay for stay in self.stays if stay.hosts]

    @property
    def hosts(self) -> set[str]:
        """Jobs that had a guest."""
        return {host for stay in self.guests for host in stay.hosts}


def read_stays(log: str, jobs: Mapping[str, Any]) -> Shared:
    """All stays of these jobs, from slurmctld's log."""
    here: dict[str, Stay] = {}
    found = Shared()
    for line in log.splitlines():
        if (match := STARTED.match(line)) and match["job"] in jobs:
            nodes = frozenset(nodes_of(match["rest"]))
            hosts = tuple(sorted(job for job, stay in here.items() if stay.nodes & nodes))
            here[match["job"]] = Stay(match["job"], instant_s(match["at"]), nodes, hosts)
            found.stays.append(here[match["job"]])
            continue
        requeued = _REQUEUED.match(line)
        match = requeued or ENDED.match(line)
        if match and match["job"] in here:
            stay = here.pop(match["job"])
            stay.end_s, stay.requeued = instant_s(match["at"]), bool(requeued)
    return found


def prepare(stand: Stand) -> None:
    """Copies the workflows to the users' home, which all nodes see."""
    for path in sorted(_WORKLOADS.glob("*.py")):
        put = f"mkdir -p workloads; cat >workloads/{path.name}"
        stand.shell("sh", "-c", put, stdin=path.read_bytes())


def run(stand: Stand, nodes: Nodes, flows: Sequence[Workflow], bound_s: float) -> dict[str, Any]:
    """Runs one set; returns the figures, and each job.

    Raises:
        BenchError: not all jobs ended, or the log lacks some.
    """
    stand.shell("sh", "-c", "rm -rf flows")
    meters = stand.meters()
    before, cpu_s = meters.read(), nodes.cpu_s()
    nodes.memory_mib()
    given = [(flow.number, flow.words, sbatch_options(flow)) for flow in flows]
    lines = stand.shell("python3", "-c", _SUBMIT, stdin=json.dumps(given)).splitlines()
    ran = _submitted(lines, flows)
    wait_done(stand, bound_s, lambda: False)
    cpu_s, memory_mib = nodes.cpu_s() - cpu_s, nodes.memory_mib()
    load = load_between(before, meters.read())
    log = stand.script("logs", "controller")
    read_log(ran, log)
    printed = _check(ran, outputs(stand.shell("sh", "-c", _READ)))
    shared = read_stays(log, {one.job_id: one for one in ran})
    _eligible(ran)
    makespan_s = max(one.end_s for one in ran) - min(one.submitted_s for one in ran)
    return {
        **_figures(ran, shared, flows),
        "cpu": round(cpu_s / makespan_s / stand.nodes, 4),
        "useful_cpu": round(
            sum(p["cpu_s"] for p in printed.values()) / makespan_s / stand.nodes, 4
        ),
        "memory_mib": round(statistics.mean(memory_mib), 1) if memory_mib else 0.0,
        "load": load,
        "jobs": [_row(one, printed, shared) for one in ran],
        "pairs": [_pair(stay, ran) for stay in shared.guests],
    }


def _submitted(lines: Sequence[str], flows: Sequence[Workflow]) -> list[Ran[StageJob]]:
    ran = []
    for line in lines:
        number, called, job_id, name = line.split()
        ran.append(Ran(StageJob(flows[int(number)], name.partition("-")[2]), job_id, float(called)))
    return ran


def _check(ran: Sequence[Ran[StageJob]], said: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Notes whether results are right; returns the line that each job printed, by its id."""
    printed = {}
    for one in ran:
        text = said.get(f"flows/{one.job.workflow.number}/{one.job.stage}.out", "")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        one.right = bool(lines) and all(line["right"] for line in lines)
        if lines:
            printed[one.job_id] = lines[-1]  # of the last start
            one.program_s = lines[-1]["wall_s"]
        if not one.right and not one.why:
            one.why = " / ".join(text.splitlines()[-3:])[:300] or "no output"
    if not printed:
        raise BenchError(f"no job printed a result; {ran[0].why}")
    return printed


def _eligible(ran: Sequence[Ran[StageJob]]) -> None:
    """A job waits from the end of the stage before; `submitted_s` becomes that instant."""
    before: dict[int, float] = {}
    for one in ran:  # in the order of submission, so of stages
        number = one.job.workflow.number
        one.submitted_s = max(one.submitted_s, before.get(number, 0.0))
        before[number] = one.end_s


def _figures(
    ran: Sequence[Ran[StageJob]], shared: Shared, flows: Sequence[Workflow]
) -> dict[str, Any]:
    first_s = min(one.submitted_s for one in ran)
    ends = {one.job.workflow.number: one.end_s for one in ran}
    requeued = [stay for stay in shared.guests if stay.requeued]
    return {
        **common_figures(ran),
        "workflow_response_s": round(statistics.mean(ends[f.number] - first_s for f in flows), 2),
        "guests": len(shared.guests),
        "hosts": len(shared.hosts),
        "requeued": len(requeued),
        "pair_s": round(sum(_beside_s(stay, ran) for stay in shared.guests), 1),
    }


def _beside_s(stay: Stay, ran: Sequence[Ran[StageJob]]) -> float:
    """How long a guest ran beside hosts."""
    ends = {one.job_id: one.end_s for one in ran}
    return max(min(stay.end_s, max(ends[host] for host in stay.hosts)) - stay.start_s, 0.0)


def _pair(stay: Stay, ran: Sequence[Ran[StageJob]]) -> dict[str, Any]:
    names = {one.job_id: "-".join(map(str, one.job.key)) for one in ran}
    return {
        "guest": names[stay.job_id], "hosts": [names[host] for host in stay.hosts],
        "beside_s": round(_beside_s(stay, ran), 2), "requeued": stay.requeued,
    }  # fmt: skip


def _row(one: Ran[StageJob], printed: Mapping[str, Any], shared: Shared) -> dict[str, Any]:
    line = printed.get(one.job_id, {})
    return {
        "kind": one.job.workflow.kind, "stage": one.job.stage, "nodes": one.job.workflow.nodes,
        "workflow": one.job.workflow.number,
        "wait_s": round(one.start_s - one.submitted_s, 2),
        "ran_s": round(one.end_s - one.start_s, 2), "wall_s": line.get("wall_s", 0.0),
        "cpu_s": line.get("cpu_s", 0.0), "right": one.right,
        "host": one.job_id in shared.hosts,
        "guest": any(stay.job_id == one.job_id for stay in shared.guests),
    }  # fmt: skip


def set_policy(stand: Stand, policy: Mapping[str, Any]) -> None:
    """Switches the service's policy; jobs may share again, should the one before have ended it."""
    put = "cat >/tmp/policy.yaml && schedbridge policy set /tmp/policy.yaml"
    stand.shell("sh", "-c", put, user="root", stdin=json.dumps(policy))
    stand.shell("schedbridge", "coschedule", "on", user="root")
