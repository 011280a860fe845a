#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A site's story on a dockerized Slurm with accounting: from its own history to a policy in force.

    scripts/environment && .venv/bin/python examples/story/story.py

1. A day of KTH-SP2's jobs runs under Slurm's own backfill, `--speed` times faster: run times, time
   limits and gaps are divided by it. Limits become whole minutes, as Slurm has them.
2. `schedbridge lab import` reads the cluster's accounting.
3. `lab experiment` compares policies on these jobs; its workers are jobs of the same Slurm.
4. `lab experiment-report` judges; `lab rerun` repeats one of the results. Of the
   policies that are shown to be better, and whose longest wait is not shown to be worse, the one
   with the shortest mean wait is switched on; or the one that `--policy` names, in any case.
5. With `--again` the same day runs once more, under that policy.

Every command is printed before it runs. The cluster is removed at the end (`--keep`: it stays).
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bridge.lab.sim.workloads.swf import Field, read_swf
from bridge.registry import PRESETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRACE = ROOT / "bridge/lab/sim/data/KTH-SP2-1996-excerpt.swf.gz"
FIRST_DAY = 131
DAY_S = 86_400
NODES, CPUS = 25, 4
FIRST_UID = 5000
HOME = "/home/user"


class Story:
    """A cluster and what is said to it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def cluster(self, verb: str, *words: str) -> str:
        """A verb of scripts/cluster."""
        command = ["scripts/cluster", verb, "--name", self.name, *words]
        return self._run(command, shlex.join(command))

    def shell(self, *words: str, user: str = "user", told: bool = True, given: str = "") -> str:
        """A command on the login side."""
        command = ["scripts/cluster", "shell", "--name", self.name, "--user", user, "--", *words]
        return self._run(command, shlex.join(words) if told else "", given)

    def inside(self, daemon: str, *words: str, told: bool = True) -> str:
        """A command as root in the container of a daemon."""
        command = ["docker", "exec", f"{self.name}-{daemon}", *words]
        return self._run(command, f"({daemon}) {shlex.join(words)}" if told else "")

    def _run(self, command: list[str], told: str, given: str = "") -> str:
        if told:
            print(f"\n$ {told}", flush=True)
        done = subprocess.run(
            command,
            cwd=ROOT,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if told else subprocess.PIPE,
            text=True,
            check=False,
        )
        if told:
            print(done.stdout.rstrip(), flush=True)
        if done.returncode:
            why = "" if told else f": {done.stderr or done.stdout}"
            sys.exit(f"story: {shlex.join(command)} failed{why}")
        return done.stdout

    # ------------------------------------------------------------------ the parts

    def make_users(self, users: list[str]) -> None:
        """The same users in every container, and their associations."""
        shape = "{{.Names}}"
        label = f"label=schedbridge.cluster={self.name}"
        listed = subprocess.run(
            ["docker", "ps", "--filter", label, "--format", shape],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = [f"useradd --no-create-home --uid {FIRST_UID + n} {u}" for n, u in enumerate(users)]
        for container in listed.stdout.split():
            subprocess.run(["docker", "exec", container, "sh", "-ec", "\n".join(lines)], check=True)
        add = ("sacctmgr", "-i", "add", "user", ",".join(users), "account=everyone")
        self.shell(*add, user="root", told=False)

    def run_day(self, jobs: list[dict[str, object]], name: str) -> None:
        """Submits a day's jobs and waits until the last one has ended."""
        print(f"\n# {len(jobs)} jobs named {name} are submitted ...", flush=True)
        listed = json.dumps([{**job, "name": name} for job in jobs])
        submit = (HERE / "submit.py").read_text()
        self.shell("python3", "-P", "-c", submit, user="root", told=False, given=listed)
        while self.shell("squeue", "-h", "-o", "%i", told=False).strip():
            time.sleep(2)
        time.sleep(5)  # until accounting has the last end

    def waits_s(self, name: str) -> np.ndarray:
        """(n_jobs,) as accounted."""
        words = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "-aXnP", f"--name={name}", "-Snow-1days")
        rows = self.shell(*words, "-oSubmit,Start", user="root", told=False).split()
        return np.array([int(b) - int(a) for a, b in (row.split("|") for row in rows)])

    def tell_day(self, name: str) -> None:
        """What its users had."""
        waits = self.waits_s(name)
        p95 = np.percentile(waits, 95)
        told = f"mean wait {waits.mean():.0f} s, 95 % within {p95:.0f} s, longest {waits.max()} s"
        print(f"# {name}, as accounted: {len(waits)} jobs, {told}", flush=True)


def day_of(number: int, speed: float) -> list[dict[str, object]]:
    """The jobs of a day of the trace, made faster."""
    columns = read_swf(TRACE).columns
    day = columns[columns[:, Field.SUBMIT_S] // DAY_S == FIRST_DAY + number]
    if not day.size or speed <= 0:
        sys.exit(f"story: no job is submitted on day {number} at speed {speed:g}")
    first_s = day[:, Field.SUBMIT_S].min()
    return [
        {
            "after_s": float(job[Field.SUBMIT_S] - first_s) / speed,
            "user": f"u{int(job[Field.USER])}",
            "cpus": int(job[Field.ALLOCATED_PROCESSORS]),
            "limit_min": max(1, -int(-job[Field.REQUESTED_TIME_S] // (60 * speed))),
            "run_s": round(float(max(job[Field.RUNTIME_S], 1)) / speed, 2),
        }
        for job in day
    ]


def chosen(report: dict[str, object]) -> str:
    """The policy that the rule of the story chooses; empty: none."""
    better: dict[str, float] = {}
    barred = set()
    for one in report["comparisons"]:  # type: ignore[attr-defined]
        if one["class_kind"] != "all":
            continue
        if one["measure"] == "wait_mean" and one["outcome"] == "better":
            better[one["policy"]] = one["other"]
        if one["measure"] == "wait_max" and one["outcome"] == "worse":
            barred.add(one["policy"])
    fit = {policy: wait for policy, wait in better.items() if policy not in barred}
    return min(fit, key=fit.__getitem__) if fit else ""


def history(story: Story, jobs: list[dict[str, object]]) -> None:
    """Parts 1 and 2."""
    size = ("--nodes", str(NODES), "--cpus", str(CPUS), "--packed", "--accounting")
    story.cluster("up", *size, "--scheduler", "backfill-tuned")
    story.make_users(sorted({str(job["user"]) for job in jobs}))
    story.run_day(jobs, "before")
    story.tell_day("before")
    story.shell("schedbridge", "lab", "import", "--force")


def experiment(story: Story) -> str:
    """Parts 3 and 4; the policy that was chosen, or nothing."""
    plan = (HERE / "plan.yaml").read_text()
    story.shell("sh", "-c", "cat > plan.yaml", told=False, given=plan)
    story.shell("cat", "plan.yaml")
    story.shell("schedbridge", "lab", "experiment", "plan.yaml", "--dry-run")
    slurm = ("--on", "slurm", "--jobs", "2", "--memory", "500MiB", "--walltime", "00:20:00")
    story.shell("schedbridge", "lab", "experiment", "plan.yaml", *slurm)
    story.shell("sacct", "-X", "--name=schedbridge-experiment", "-oJobID,JobName,NodeList,State")
    report = ("schedbridge", "lab", "experiment-report", "plan.yaml")
    story.shell(*report, "--html", "report.html")
    story.shell(*report, "--measure", "wait_max")
    cells = story.shell("sh", "-c", "ls results/cells/*.json", told=False).split()
    story.shell("schedbridge", "lab", "rerun", cells[0])
    text = story.shell(*report, "--json", told=False)
    return chosen(json.loads(text))


def switch_on(story: Story, policy: str) -> None:
    """The rest of part 4, and a look at what decides now."""
    configuration = "/etc/schedbridge/bridge.yaml"
    story.inside("service", "sed", "-i", f"s/^policy: .*/policy: {policy}/", configuration)
    story.inside("service", "grep", "^policy", configuration)
    story.inside("service", "schedbridge", "check-config", configuration, told=False)
    story.cluster("restart", "service")
    story.cluster("switch", "bridge")
    story.shell("schedbridge", "status")
    look = ("sbatch", "--wrap", "sleep 30", "-o", "/dev/null", "-J", "look", "-t", "2")
    for cpus in (60, 60, 80):
        last = story.shell(*look, f"-n{cpus}").split()[-1]
    time.sleep(2)
    story.shell("schedbridge", "plan")
    story.shell("schedbridge", "explain", last)
    story.shell("scancel", "--me")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="story", help="of the cluster")
    parser.add_argument("--day", type=int, default=11, help="of the excerpt, from 0")
    parser.add_argument("--speed", type=float, default=120.0, help="times faster")
    parser.add_argument("--keep", action="store_true", help="leave the cluster")
    parser.add_argument(
        "--go-on", action="store_true", help="the cluster is there, and its history is imported"
    )
    parser.add_argument(
        "--policy", choices=PRESETS, metavar="PRESET", help="switch it on, whatever the verdict"
    )
    parser.add_argument("--again", action="store_true", help="the same day again, under the policy")
    given = parser.parse_args()
    story = Story(given.name)
    jobs = day_of(given.day, given.speed)
    if not given.go_on:
        history(story, jobs)
    shown = experiment(story)
    print(f"\n# shown to be better: {shown or 'none'}", flush=True)
    if not (shown or given.policy):
        sys.exit("story: nothing is switched on (--policy NAME does so in spite of it)")
    switch_on(story, given.policy or shown)
    if given.again:
        story.run_day(jobs, "after")
        story.tell_day("before")
        story.tell_day("after")
    if not given.keep:
        story.cluster("down")


if __name__ == "__main__":
    main()
