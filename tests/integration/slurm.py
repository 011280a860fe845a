# SPDX-License-Identifier: Apache-2.0
"""A dockerized Slurm as tests see it: run commands, wait for facts, read Slurm's own records."""

import json
import math
import os
import re
import shlex
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
KEEP = bool(os.environ.get("SCHEDBRIDGE_KEEP_CLUSTER"))
T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One allocation in Slurm's accounting; times are Unix seconds, None if not begun or ended.

    `raw_id` is the number Slurm gave an array's task, `job_id` the name a user knows it by.
    """

    job_id: str
    state: str
    submit_s: int
    start_s: int | None
    end_s: int | None
    nodes: tuple[str, ...]
    cpus: int
    restarts: int
    name: str = ""
    raw_id: str = ""


class Cluster:
    """One cluster of scripts/cluster, named so that several can stand side by side."""

    def __init__(self, name: str, *options: str) -> None:
        self.name, self.options = name, options

    def script(self, *arguments: str, timeout_s: float = 600) -> str:
        """Runs a verb of scripts/cluster."""
        done = self.process_of(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"cluster {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def process_of(
        self, *arguments: str, timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """The same, also if it fails."""
        return subprocess.run(
            [str(ROOT / "scripts/cluster"), *arguments, "--name", self.name],
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip

    def up(self) -> None:
        self.process_of("down")  # `up` uses an empty network that the engine keeps
        self.script("up", *self.options)

    def down(self) -> None:
        self.script("down")

    @contextmanager
    def standing(self, prepare: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Keeps the cluster up; `prepare` is called for a new one.

        With SCHEDBRIDGE_KEEP_CLUSTER=1 one that is already up is used, and it is left up.
        """
        if not (KEEP and self.name in self.process("scontrol", "show", "config").stdout):
            self.up()
            prepare()
        yield
        if not KEEP:
            self.down()

    @contextmanager
    def openccs(self, **parameters: object) -> Iterator[None]:
        """Puts the policy `openccs` in force, with these parameters of its plan stage."""
        text = json.dumps({"preset": "openccs", "plan": {"name": "openccs", **parameters}})
        self.inside("service", "sh", "-c", f"echo '{text}' > /tmp/openccs.yaml")
        self.inside("service", "schedbridge", "policy", "set", "/tmp/openccs.yaml")
        try:
            yield
        finally:
            self.inside("service", "schedbridge", "policy", "set", "slurm-like")

    def login(self, user: str) -> list[str]:
        """What goes before a command of a user on the login side.

        It is what `scripts/cluster shell` becomes, without its 0.3 s of start-up: a test waits by
        asking again and again, and would keep one of two processors busy with that alone.
        """
        home = "/root" if user == "root" else f"/home/{user}"
        return [
            "docker", "exec", "-i", "--user", user, "--workdir", home, "--env", f"USER={user}",
            "--env", f"LOGNAME={user}", f"{self.name}-login",
        ]  # fmt: skip

    def process(
        self, *command: str, user: str = "user", stdin: str | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on the login side."""
        return subprocess.run(
            [*self.login(user), *command],
            capture_output=True, text=True, timeout=timeout_s, input=stdin or "", check=False,
        )  # fmt: skip

    def run(self, *command: str, **how: object) -> str:
        done = self.process(*command, **how)  # type: ignore[arg-type]
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def root(self, *command: str) -> str:
        return self.run(*command, user="root")

    def inside(self, daemon: str, *command: str, user: str = "root") -> str:
        """Runs a command in the container of a daemon."""
        done = subprocess.run(
            ["docker", "exec", "-u", user, f"{self.name}-{daemon}", *command],
            capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    # ------------------------------------------------------------------ jobs

    def sbatch(self, *options: str, run: str = "sleep 1", user: str = "user") -> str:
        """Submits a batch job and returns its id."""
        out = self.run(
            "sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", run, user=user
        )
        return out.split(";")[0].splitlines()[-1]

    def job(self, job_id: str) -> dict[str, str]:
        """What scontrol shows of a job (the first record for an array)."""
        out = self.run("scontrol", "show", "job", "-o", job_id)
        return dict(re.findall(r"(\S+?)=(\S*)", out.splitlines()[0]))

    def state(self, job_id: str) -> str:
        return self.job(job_id)["JobState"]

    def queue(self) -> dict[str, str]:
        """State by job id of everything in the queue."""
        out = self.run("squeue", "-h", "-r", "-o", "%i %T")
        return dict(line.split() for line in out.splitlines())

    def wait_for(self, what: str, fact: Callable[[], T], timeout_s: float = 60) -> T:
        """Waits until a fact is true and returns it."""
        deadline = time.monotonic() + timeout_s
        while not (found := fact()):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}\n{self.report()}"
            time.sleep(0.1)
        return found

    def wait_state(self, job_id: str, *states: str, timeout_s: float = 60) -> None:
        self.wait_for(f"job {job_id} {states}", lambda: self.state(job_id) in states, timeout_s)

    def wait_empty(self, timeout_s: float = 120) -> None:
        loop = f"for try in $(seq {int(timeout_s * 5)}); do"
        loop += ' jobs=$(squeue -h -o %i) && [ -z "$jobs" ] && exit 0; sleep 0.2; done; exit 1'
        done = self.process("sh", "-c", loop, timeout_s=4 * timeout_s + 60)
        assert done.returncode == 0, f"not within {timeout_s} s: an empty queue\n{self.report()}"

    def report(self) -> str:
        """What a person would look at first."""
        shown = [
            self.process("squeue", "-a", "-o", "%.8i %.9T %.4D %.19S %R").stdout,
            self.process("sinfo", "-N", "-h", "-o", "%N %T %E").stdout,
            self.script("logs", "controller")[-3000:],
        ]
        return "\n".join(shown)

    # ------------------------------------------------------------------ records

    def records(self) -> list[Record]:
        """All allocations in the accounting database, requeued ones included."""
        fields = "JobID,JobIDRaw,State,Submit,Start,End,NodeList,AllocCPUS,Restarts,JobName"
        out = self.run(
            "env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-X", "-D", "-P", "-n",
            "-S", "now-1days", "-o", fields, user="root",
        )  # fmt: skip
        found = []
        for line in out.splitlines():
            job, raw, state, submit, start, end, nodes, cpus, restarts, name = line.split("|", 9)
            held = () if nodes in ("None assigned", "") else tuple(expand(nodes))
            found.append(
                Record(
                    job, state.split()[0], int(submit), _instant(start), _instant(end), held,
                    int(cpus or 0), int(restarts or 0), name, raw,
                )
            )  # fmt: skip
        return found

    def node_logs(self, words: str) -> list[str]:
        """The lines of all slurmds' logs that hold these words."""
        names = subprocess.run(
            ["docker", "ps", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
        ).stdout.split()
        lines: list[str] = []
        for container in names:
            kind = container.removeprefix(f"{self.name}-")
            if kind != container and re.fullmatch(r"(n|pack)\d+", kind):
                command = f"grep -h {shlex.quote(words)} /var/log/slurm/*.log || true"
                lines += self.inside(kind, "sh", "-c", command).splitlines()
        return lines

    def launches(self, from_s: float = 0, to_s: float = math.inf) -> Counter[str]:
        """How often the nodes launched each batch job (Slurm's own numbers), from their logs."""
        found: Counter[str] = Counter()
        for line in self.node_logs("Launching batch"):
            match = re.search(r"\[(\S+)\] Launching batch job (\d+)", line)
            assert match, line
            at_s = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
            if from_s <= at_s <= to_s:
                found[match[2]] += 1
        return found

    def purged(self) -> set[str]:
        """Jobs (Slurm's own numbers) whose script slurmd removed before the job could read it.

        A race inside slurmd 24.11, whoever schedules: when a job on a node ends, slurmd connects
        to the sockets of all steps there. A step that has bound its socket and does not listen yet
        refuses, is taken for dead, and its script is purged (`_handle_stray_script`): the job ends
        at once with code 2. Seen with some 80 runnable processes on two processors.
        """
        lost = re.compile(r"\[(\d+)\.batch\] error: execve\(\): \S+/slurm_script: No such file")
        return {found[1] for line in self.node_logs("execve(): ") if (found := lost.search(line))}

    def wait_records(self, job_ids: Iterable[str], timeout_s: float = 60) -> list[Record]:
        """Waits until accounting knows the end of all these jobs."""
        wanted = set(job_ids)

        def ended() -> list[Record]:
            mine = [r for r in self.records() if r.job_id in wanted]
            done = {r.job_id for r in mine if r.end_s is not None}
            return mine if done >= wanted else []

        return self.wait_for(f"the records of {sorted(wanted)[:5]}...", ended, timeout_s)

    def assert_sound(
        self, job_ids: Iterable[str], *, cpus_per_node: int,
        states: Iterable[str] = ("COMPLETED",), requeued: Iterable[str] = (),
        unjudged: Iterable[str] = (),
    ) -> list[Record]:  # fmt: skip
        """No job lost, none started twice, no node oversubscribed: from Slurm's own records.

        Everything that ran since the first of these jobs counts as use of a node, except for the
        `unjudged`.
        """
        wanted = list(job_ids)
        records = self.wait_records(wanted)
        per_job: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            per_job[record.job_id].append(record)
        for job_id in wanted:
            last = per_job[job_id][-1]
            assert last.state in states, f"job {job_id} ended {last.state}"
            if job_id not in requeued:
                assert len(per_job[job_id]) == 1, f"job {job_id} ran {len(per_job[job_id])} times"
                assert last.restarts == 0, f"job {job_id} was restarted"
        from_s = min((record.submit_s for record in records), default=0)
        besides = set(unjudged)
        overload = oversubscribed(
            (
                record
                for record in self.records()
                if record.job_id not in besides and (record.end_s is None or record.end_s >= from_s)
            ),
            cpus_per_node,
        )
        assert not overload, overload
        return records


def _instant(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def expand(hostlist: str) -> list[str]:
    """Expands `n[1-3,7],big1`; enough for the names of the test clusters."""
    names: list[str] = []
    for prefix, ranges, plain in re.findall(r"([^,\[\]]+)\[([^\]]+)\]|([^,\[\]]+)", hostlist):
        if plain:
            names.append(plain)
            continue
        for part in ranges.split(","):
            low, _, high = part.partition("-")
            width = len(low)
            names += [f"{prefix}{n:0{width}d}" for n in range(int(low), int(high or low) + 1)]
    return names


def oversubscribed(records: Iterable[Record], cpus_per_node: int) -> str:
    """Says which node had more CPUs allocated than it has, and when; empty if none."""
    events: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for record in records:
        if record.start_s is None or not record.nodes:
            continue
        each = -(-record.cpus // len(record.nodes))
        end_s = record.end_s if record.end_s is not None else 2**62
        for node in record.nodes:
            events[node] += [(record.start_s, each, record.job_id), (end_s, -each, record.job_id)]
    for node, changes in events.items():
        used = 0
        for when, change, job_id in sorted(changes, key=lambda c: (c[0], c[1])):
            used += change
            if used > cpus_per_node:
                return f"{node} has {used} of {cpus_per_node} CPUs in use at {when} (job {job_id})"
    return ""


def instant_s(text: str) -> int:
    """An instant as Slurm writes it; the containers' clocks are on UTC."""
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def announced_s(cluster: Cluster, job: str) -> int:
    """The start that squeue shows, once there is one."""

    def shown() -> int:
        text = cluster.run("squeue", "--start", "-h", "-j", job, "-o", "%S")
        return 0 if text in ("", "N/A", "None") else instant_s(text)

    return cluster.wait_for(f"an announced start of {job}", shown, 30)
