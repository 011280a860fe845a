# SPDX-License-Identifier: Apache-2.0
"""One run: submits jobs, feeds meters, switches the corridor, reads logs, checks results."""

import json
import math
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster_bench.batch import (
    Ran,
    cancel_all,
    common_figures,
    common_row,
    nodes_of,
    outputs,
    read_log,
    spread,
)
from cluster_bench.meters import load_between
from cluster_bench.stand import BenchError, Stand
from elastic_bench import programs
from elastic_bench.steps import changes, resizes, stages

from bridge.lab.sim.corridor.steps import CorridorStep
from power_bench import judge
from power_bench.jobs import Costs, Experiment, Job
from power_bench.rig import NodeMeters, Truth

_HERE = Path(__file__).parent
_READ = 'for job; do echo "== $job"; cat power/$job.out; done'
_EXPECTED = 'while read -r program; do echo "== $program"; $program | tail -1; done'
_PACE = re.compile(r"^pace: ([\d.]+) s$", re.MULTILINE)
_RESULT = re.compile(r"^(?:pi: hits|heat: steps) .*$", re.MULTILINE)
_PAGE = (
    "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9618/metrics').read().decode())"
)


@dataclass
class Switches:
    """The changes of the corridor, by the command; `made`: when each was requested and done."""

    stand: Stand
    steps: Sequence[CorridorStep]
    made: list[dict[str, object]] = field(default_factory=list)
    failed: str = ""

    def begin(self, origin_s: float) -> None:
        """Makes the changes in the background, at their instants after `origin_s`."""
        threading.Thread(target=self._make, args=(origin_s,), daemon=True).start()

    def _make(self, origin_s: float) -> None:
        for step in self.steps:
            time.sleep(max(origin_s + step.at_s - time.time(), 0))
            begun_s = time.time()
            bounds = f"{step.lower_w}W-{step.upper_w}W"
            words = ("schedbridge", "power", "corridor", bounds, "--reason", "demand response")
            try:
                self.stand.shell(*words, user="root")
            except (BenchError, subprocess.TimeoutExpired) as error:
                self.failed = str(error)
                return
            took_s = round(time.time() - begun_s, 2)
            at_s = round(begun_s - origin_s, 2)
            self.made.append({"bounds": bounds, "at_s": at_s, "took_s": took_s})


@dataclass
class Followed:
    """The reports of the login node: ids and instants of submission, in their order; the truth."""

    truth: Truth
    ids: dict[int, str] = field(default_factory=dict)
    called_s: dict[int, float] = field(default_factory=dict)


def run(
    stand: Stand,
    given: Experiment,
    jobs: Sequence[Job],
    rig: NodeMeters,
    bound_s: float,
) -> dict[str, object]:
    """Runs all jobs; returns the figures, and each job."""
    programs.compile_examples(stand, ["wheel"], _HERE / "pace.c")
    expected = _expected(stand, jobs)
    stand.shell(
        "sh", "-c", "rm -rf power; mkdir power; cat >login.py",
        stdin=(_HERE / "login.py").read_bytes(),
    )  # fmt: skip
    bridge = stand.scheduler == "bridge"
    switches = Switches(stand, given.corridor.steps[1:] if bridge else ())
    meters = stand.meters()
    before = meters.read()
    lines = _lines(stand, jobs, bound_s)
    found = _followed(given, jobs, rig, switches, lines)
    load = load_between(before, meters.read())
    if switches.failed:
        raise BenchError(f"the corridor was not changed: {switches.failed}")
    ids = [found.ids[job.number] for job in jobs]
    called_s = [found.called_s[job.number] for job in jobs]
    ran = [Ran(job, *each) for job, *each in zip(jobs, ids, called_s, strict=True)]
    log = stand.script("logs", "controller")
    read_log(ran, log)
    said = outputs(stand.shell("sh", "-c", _READ, "sh", *ids, timeout_s=600))
    _check(ran, said, expected)
    service = stand.script("logs", "service") if bridge else ""
    return {
        **_figures(ran, said, service, log),
        **judge.figures(judge.measured(given, found.truth, ids, called_s, _end_s(ran))),
        "switches": switches.made,
        "decision": _decisions(stand) if bridge else {},
        "load": load,
        "power": _series(found.truth, called_s[0], _end_s(ran)),
        "jobs": [_row(one) for one in ran],
    }


def _followed(
    given: Experiment,
    jobs: Sequence[Job],
    rig: NodeMeters,
    switches: Switches,
    lines: Iterable[dict],
) -> Followed:
    """Feeds the meters until the last job has ended."""
    nodes = [f"n{number}" for number in range(1, given.nodes + 1)]
    found, told_s = Followed(Truth(nodes)), time.monotonic()
    for line in lines:
        if "job" in line:
            job = jobs[line["number"]]
            found.ids[job.number], found.called_s[job.number] = line["job"], line["called"]
            found.truth.draw_w[line["job"]] = job.draw_w
            if job.number == 0:
                switches.begin(line["called"])
        elif "held" in line:
            held = {job: nodes_of(nodelist) for job, nodelist in line["held"]}
            watts = found.truth.note(line["at"], held)
            rig.show(line["at"], watts)
            if time.monotonic() - told_s > 30:
                told_s = time.monotonic()
                switches.stand.say(f"  {len(held)} jobs run; {sum(watts.values())} W")
    if len(found.ids) != len(jobs):
        raise BenchError(f"{len(found.ids)} of {len(jobs)} jobs were submitted")
    return found


def _lines(stand: Stand, jobs: Sequence[Job], bound_s: float) -> Iterator[dict]:
    """Submits the jobs; yields the reports of the login node until the end."""
    exports = programs.exports()
    words = json.dumps([(job.at_s, job.options, job.script(exports)) for job in jobs])
    with subprocess.Popen(
        stand.command("python3", "login.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as teller:  # fmt: skip
        assert teller.stdin
        assert teller.stdout
        assert teller.stderr
        teller.stdin.write(words)
        teller.stdin.close()
        until_s = time.monotonic() + bound_s
        for line in teller.stdout:
            yield json.loads(line)
            if time.monotonic() > until_s:
                teller.kill()
                cancel_all(stand)
                raise BenchError(f"not all jobs have ended after {bound_s:.0f} s")
        if teller.wait():
            raise BenchError(f"submitting failed: {teller.stderr.read()[-300:]}")


def _expected(stand: Stand, jobs: Sequence[Job]) -> Mapping[str, str]:
    """By command: the result of a rigid run on one process, without pauses."""
    commands = sorted({job.command for job in jobs})
    settings = [f"{name}={value}" for name, value in programs.SETTINGS.items()]
    said = stand.shell("env", *settings, "sh", "-c", _EXPECTED, stdin="\n".join(commands) + "\n")
    found = {command: _RESULT.findall(text) for command, text in outputs(said).items()}
    if missing := [command for command in commands if len(found.get(command, [])) != 1]:
        raise BenchError(f"'{missing[0]}' has no result: {said[-300:]}")
    return {command: lines[0] for command, lines in found.items()}


def _check(
    ran: Sequence[Ran[Job]], said_by: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    for one in ran:
        said = said_by.get(one.job_id, "")
        one.right = _RESULT.findall(said) == [expected[one.job.command]]
        paced = _PACE.findall(said)
        one.program_s = float(paced[0]) if len(paced) == 1 else 0.0
        each = [made for _, outcome, made in stages(said) if outcome == "done"]
        one.windows_s = tuple(made["going"] for made in each if "going" in made)
        if not one.right and not one.why:
            one.why = " / ".join(said.splitlines()[-3:])[:300] or "no output"


def _end_s(ran: Sequence[Ran[Job]]) -> int:
    return math.ceil(max(one.end_s for one in ran))


def _figures(
    ran: Sequence[Ran[Job]], said_by: Mapping[str, str], service: str, log: str
) -> dict[str, object]:
    made = [one for one in changes(service) if one.job in said_by]
    good = [one for one in made if one.done]
    lasted = [one.end_s - one.begin_s for one in good]
    windows = [s for one in ran for s in one.windows_s]
    around = [one.end_s - one.start_s - one.program_s for one in ran if one.right and one.program_s]
    locks = [one.lock_ms for one in resizes(log) if one.job in said_by]
    costs = Costs(*(round(statistics.mean(x), 3) if x else 0.0 for x in (lasted, windows, around)))
    return {
        **common_figures(ran),
        "resizes": len(good),
        "not_done": len(made) - len(good),
        "why": sorted({one.why for one in made if one.why}),
        "change_s": spread(lasted),
        "window_s": spread(windows),
        "around_s": spread(around),
        "lock_ms": spread(locks),
        "costs": vars(costs),
    }


def _decisions(stand: Stand) -> dict[str, float]:
    """The service's own metrics: planning times, failures, refusals."""
    python = f'$(ls /opt/*/bin/python | head -1) -c "{_PAGE}"'
    page = subprocess.run(
        ["docker", "exec", f"{stand.name}-service", "sh", "-c", python],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    plan = {name: _metric(page, f"schedbridge_plan_seconds_{name}") for name in ("sum", "count")}
    quick = 'schedbridge_plan_seconds_bucket{le="0.02"}'
    refusals = r"^schedbridge_power_refusals_total\{[^}]*\} (\S+)$"
    return {
        "cycles": int(plan["count"]),
        "mean_ms": round(1e3 * plan["sum"] / max(plan["count"], 1), 3),
        "within_20_ms": round(_metric(page, quick) / max(plan["count"], 1), 4),
        "failures": int(_metric(page, "schedbridge_policy_failures_total")),
        "refused_readings": int(sum(map(float, re.findall(refusals, page, re.MULTILINE)))),
        "nodes_measured": int(_metric(page, "schedbridge_power_nodes")),
    }


def _metric(page: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _series(truth: Truth, origin_s: float, end_s: int) -> dict[str, list[int]]:
    """System power each second from the first submission on."""
    first = math.floor(origin_s)
    found = [(at - first, w) for at, w in zip(truth.at_s, truth.power_w, strict=True)]
    inside = [(max(at, 0), w) for at, w in found if -1 <= at < end_s - first]
    return {"at_s": [at for at, _ in inside], "power_w": [w for _, w in inside],
            "end_s": [end_s - first]}  # fmt: skip


def _row(one: Ran[Job]) -> dict[str, object]:
    return {
        "job": one.job.number, "program": one.job.program, "nodes": one.job.nodes,
        "draw_w": one.job.draw_w, "model_s": round(one.job.runs_s, 2), **common_row(one),
    }  # fmt: skip
