# SPDX-License-Identifier: Apache-2.0
"""Runs the cases under one scheduler, in the world of `tests.real_pbs.world`.

Usage: python -m tests.real_pbs.world python -m tests.real_pbs.differential.run pbs_sched|bridge
           FILE [PART/PARTS] [WORDS]

Writes for each case what every job came to: its state; where it ran the chunks it got, on how many
vnodes. FILE is JSON, to which results are added; WORDS select cases, and 2/3 the second third.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.real_pbs.differential.cases import CASES
from tests.real_pbs.server import HOME, Server, wait_for
from tests.real_pbs.service import Bridge

STABLE_S, MAX_S = 1.5, 20.0
BEGUN_S = 40.0
RESOURCES = (
    "create resource scratch type=size,flag=hn", "create resource color type=string,flag=h",
    "create resource rack type=string_array,flag=h", "create resource big type=boolean,flag=h",
    "create resource lic type=long,flag=q", "create resource ngpus type=long,flag=hn",
    "create resource site type=string", "create resource open type=boolean",
    "create resource apps type=string_array",
)  # fmt: skip
NODES = {
    "n1": ("ncpus=4", "mem=8gb", "rack=r1"),
    "n2": ("ncpus=4", "mem=8gb", "rack=r1", "scratch=100gb", "ngpus=2"),
    "n3": ("ncpus=4", "mem=8gb", "rack=r2", "color=red"),
    "n4": ("ncpus=4", "mem=8gb", "rack=r2", "big=True"),
}
BASE = (
    "set server resources_available.lic=3", "set server resources_default.walltime=01:00:00",
    "set queue workq enabled=True", "set queue workq started=True",
    *(f"set node {vnode} queue=vq" for vnode in ("n5", "n5[0]", "n5[1]")),
)  # fmt: skip
_PRIV = HOME / "sched_priv"
_SUBMIT = re.compile(r"([a-z])(?:@([a-z]+))?(?:~(\d+))?: ?(.*)", re.DOTALL)
_SET = re.compile(r"set (server|queue|node) ?(\w*) ([\w.]+)=")


class Case:
    """One case on a server: its jobs by their letter, and how to undo what it changed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ids: dict[str, str] = {}
        self.undo: list[str] = []
        self.offline: list[str] = []
        self.reservations: list[str] = []
        self.notes: dict[str, str] = {}
        self.queue = ""
        self.files: dict[str, str] = {}

    def step(self, step: str) -> None:
        """Carries out one step."""
        word, _, rest = step.partition(" ")
        if found := _SUBMIT.fullmatch(step):
            self._submit(*found.groups())
        elif word == "qmgr":
            self._configure(rest)
        elif word == "offline":
            self.offline.append(rest)
            self.server.qmgr(f"set node {rest} state=offline")
        elif word in ("reserve", "reserve!"):
            self._reserve(shlex.split(rest), "" if word == "reserve!" else "alice")
        elif word == "begun":
            self._begun()
        elif word in ("config", "config+"):
            self._set(rest, more=word == "config+")
        elif word == "file":
            name, _, text = rest.partition(" ")
            self._write(name, _instants(text).replace("|", "\n") + "\n")
        elif word == "settle":
            self.settle()
        else:
            self._change(word, *rest.split(" "))

    def _submit(self, name: str, user: str, seconds: str, options: str) -> None:
        for other, job_id in self.ids.items():
            options = options.replace(f"{{{other}}}", job_id)
        options = options.replace("{R}", self.queue)
        try:  # -f: no qsub in the background, which would outlive the world
            script = f"sleep {seconds or 3600}"
            self.ids[name] = self.server.qsub(
                "-f", *options.split(), user=user or "alice", script=script
            )
        except RuntimeError as error:
            self.notes[name] = f"refused: {str(error).rpartition('qsub: ')[2][:60]}"

    def _configure(self, line: str) -> None:
        self.server.qmgr(line)
        words = line.split()
        if words[0] == "create":
            self.undo.append(f"delete {words[1]} {words[2]}")
        elif found := _SET.match(line):
            self.undo.append(f"unset {found.group(1)} {found.group(2)} {found.group(3)}")

    def _reserve(self, options: list[str], user: str) -> None:
        begin = options.index("-R") + 1
        at = time.localtime(time.time() + int(options[begin]))
        options[begin] = time.strftime("%Y%m%d%H%M.%S", at)
        told = self.server.run("env", "PBS_TZID=UTC", "pbs_rsub", *options, user=user, check=False)
        names = re.findall(r"[RSM]\d+\.\w+", told)
        self.reservations += names
        self.queue = names[0].partition(".")[0] if names else "none"

    def _begun(self) -> None:
        wait_for(
            "a reservation that runs",
            lambda: "RESV_RUNNING" in self.server.run("pbs_rstat", "-F", check=False),
            BEGUN_S,
        )

    def _set(self, line: str, *, more: bool) -> None:
        """Changes a line of sched_config, or adds one."""
        name = line.partition(":")[0]
        text = (_PRIV / "sched_config").read_text(encoding="utf-8")
        if not more:
            text = re.sub(rf"(?m)^{name}:.*\n", "", text)
        self._write("sched_config", f"{text}\n{line}\n")

    def _write(self, name: str, text: str) -> None:
        path = _PRIV / name
        self.files.setdefault(name, path.read_text(encoding="utf-8"))
        _replace(path, text)

    def _change(self, word: str, name: str, *options: str) -> None:
        job_id = self.ids.get(name, "none")
        command = {
            "hold": ["qhold", *options, job_id], "release": ["qrls", *options, job_id],
            "delete": ["qdel", "-Wforce", job_id], "rerun": ["qrerun", job_id],
            "alter": ["qalter", *options, job_id], "suspend": ["qsig", "-s", "suspend", job_id],
            "resume": ["qsig", "-s", "resume", job_id], "run": ["qrun", job_id],
            "move": ["qmove", *options, job_id], "free": ["pbs_release_nodes", "-a", "-j", job_id],
        }[word]  # fmt: skip
        self.server.run(*command, check=False, limit_s=60)

    def settle(self) -> None:
        """Waits until no job changes for a while."""
        self.server.qmgr("set server scheduling=True")
        began = changed = time.monotonic()
        before: object = None
        while time.monotonic() - changed < STABLE_S and time.monotonic() - began < MAX_S:
            now = {
                j: (a["job_state"], a.get("exec_vnode")) for j, a in self.server.jobs("-t").items()
            }
            if now != before:
                before, changed = now, time.monotonic()
            time.sleep(0.3)

    def observed(self) -> dict[str, object]:
        """What the jobs and reservations came to."""
        jobs, found = self.server.jobs("-t"), dict[str, object](self.notes)
        for name, job_id in self.ids.items():
            number, _, rest = job_id.partition("[]")
            if rest:
                tasks = [a for j, a in jobs.items() if j.startswith(f"{number}[") and "[]" not in j]
                states = [str(task["job_state"]) for task in tasks]
                found[name] = {state: states.count(state) for state in sorted(set(states))}
            elif job_id in jobs:
                found[name] = _came_to(jobs[job_id])
            else:
                found[name] = "gone"
        told = self.server.run("pbs_rstat", "-F", check=False)
        for at, name in enumerate(self.reservations):
            state = re.search(
                rf"{re.escape(name.partition('.')[0])}.*?reserve_state = (\w+)", told, re.S
            )
            found[f"reservation {at + 1}"] = state.group(1) if state else "gone"
        return found

    def clean(self) -> None:
        """Deletes the jobs and undoes the changes."""
        for name in self.reservations:
            self.server.run("pbs_rdel", name, check=False)
        self.server.delete_all()
        for name, text in self.files.items():
            _replace(_PRIV / name, text)
        for node in self.offline:
            self.server.run("qmgr", "-c", f"set node {node} state=free", check=False)
        for line in reversed(self.undo):
            self.server.run("qmgr", "-c", line, check=False)
        configure(self.server)


def _instants(text: str) -> str:
    """Writes instants that are stated relative to now."""

    def written(found: re.Match[str]) -> str:
        at = time.localtime(time.time() + int(found.group(2)))
        return time.strftime("%H%M" if found.group(1) else "%m/%d/%Y %H:%M", at)

    return re.sub(r"\{(@?)([+-]\d+)\}", written, text)


def _replace(path: Path, text: str) -> None:
    """Writes a file of sched_priv, and has pbs_sched read it again if it runs."""
    path.write_text(text, encoding="utf-8")
    lock = _PRIV / "sched.lock"
    word = lock.read_text(encoding="utf-8").split() if lock.exists() else []
    named = Path(f"/proc/{word[0]}/comm") if word else lock
    if named != lock and named.exists() and named.read_text().startswith("pbs_sched"):
        os.kill(int(word[0]), signal.SIGHUP)
    time.sleep(1.5)


def _came_to(job: dict[str, object]) -> dict[str, object]:
    state = str(job["job_state"])
    if state not in ("R", "S"):
        return {"state": state}
    written = str(job.get("exec_vnode", ""))
    chunks = sorted(re.sub(r"\(\w+", "(", chunk) for chunk in written.split("+"))
    vnodes = sorted(set(re.findall(r"\((\w+)", written)))
    return {"state": state, "chunks": "+".join(chunks), "vnodes": len(vnodes), "on": vnodes}


def configure(server: Server) -> None:
    """Sets what the cases assume."""
    nodes = [
        f"set node {node} resources_available.{value}"
        for node, values in NODES.items()
        for value in values
    ]
    server.qmgr(*BASE, *nodes)


def start(scheduler: str, server: Server) -> Bridge | None:
    """Starts a scheduler."""
    config = _PRIV / "sched_config"
    text = config.read_text(encoding="utf-8")
    more = "scratch, color, rack, big, lic, ngpus, site, open, apps"
    config.write_text(re.sub(r'(?m)^(resources: ".*)"', rf'\1, {more}"', text), encoding="utf-8")
    if scheduler == "bridge":
        bridge = Bridge(os.environ.get("POLICY", "pbs"))
        bridge.start_service()
        bridge.start_link()
        return bridge
    subprocess.run([server.exec / "sbin/pbs_sched"], env=server.env, check=True)
    wait_for(
        "pbs_sched", lambda: "scheduling" in server.run("qmgr", "-c", "list sched", check=False)
    )
    return None


def _chosen(words: tuple[str, ...]) -> dict[str, str]:
    """The cases of the command line."""
    part, parts = 1, 1
    if words and re.fullmatch(r"\d+/\d+", words[0]):
        part, parts = map(int, words[0].split("/"))
        words = words[1:]
    named = [kind for kind in CASES if not words or any(word in kind for word in words)]
    at = [len(named) * each // parts for each in range(parts + 1)]
    return {kind: CASES[kind] for kind in named[at[part - 1] : at[part]]}


def main(scheduler: str, file: str, *words: str) -> int:
    """Runs the cases."""
    server = Server()
    server.start()
    server.qmgr(*RESOURCES)
    server.add_moms(4)
    server.add_host_of_vnodes("ncpus=2,mem=4gb", "ncpus=2,mem=4gb")
    server.qmgr("create queue vq queue_type=e,enabled=t,started=t")
    configure(server)
    bridge = start(scheduler, server)
    results: dict[str, object] = json.loads(Path(file).read_text()) if Path(file).exists() else {}
    try:
        for kind, program in _chosen(words).items():
            case, began = Case(server), time.monotonic()
            try:
                for step in program.split("; "):
                    case.step(step.strip())
                case.settle()
                results[kind] = case.observed()
            except (RuntimeError, TimeoutError, subprocess.SubprocessError) as error:
                results[kind] = {"error": str(error)[:200]}
            took_s = time.monotonic() - began
            print(f"{scheduler}: {kind}: {results[kind]} ({took_s:.1f} s)", flush=True)
            Path(file).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
            case.clean()
    finally:
        if bridge is not None:
            for log in (bridge.log, bridge.service_log):
                Path(f"{file}.{log.name}").write_bytes(log.read_bytes())
            bridge.stop()
        server.run("qterm", check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
