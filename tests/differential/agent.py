# SPDX-License-Identifier: Apache-2.0
"""Runs inside a cluster's login side: one JSON request a line, one JSON answer a line.

Kept there because a `docker exec` for every look would cost more than what is looked at. Standard
library only; the other side is `stand.Agent`.

    clear                  ends all jobs, removes all reservations, resumes all nodes
    prepare  script        runs a script as root, waits until all jobs of it run
    submit   line, user    runs a line; `foreground` waits for its end
    watch    after, ...    waits until the jobs after this id started (or ended), or a bound
    detail   ids           all that scontrol shows of these jobs
    reap                   what the submissions in the background said
"""

import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time

PREAMBLE = r"""
set -e
quiet="-o /dev/null"
# A job that holds what it asks for: hold [--uid=USER] OPTIONS (user's, one hour).
hold() {
  case "$*" in *--uid=*) ;; *) set -- --uid=user "$@" ;; esac
  sbatch -Q --parsable $quiet -D /tmp -t60 "$@" --wrap 'exec sleep 600'
}
# The id of the job of this name.
id() { squeue -h -a -n "$1" -o %A | head -n1; }
# Waits until the job of this name runs.
runs() {
  for _ in $(seq 100); do
    squeue -h -a -t R -n "$1" -o %A | grep -q . && return
    sleep 0.1
  done
}
# Runs a command as the user who submits.
as_user() { setpriv --reuid=user --regid=user --init-groups "$@"; }
# A reservation from now on, an hour, the user's.
reserve() {
  case "$*" in *Users=*) ;; *) set -- Users=user "$@" ;; esac
  scontrol create reservation StartTime=now Duration=60 "$@" >/dev/null
}
"""
FIELDS = ("id", "array", "task", "state", "nodes", "cpus", "list", "start", "user", "part", "why")
FORMAT = "%A|%F|%K|%T|%D|%C|%N|%S|%u|%P|%r"
WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD"}
ENDING = {"COMPLETING"}
LIVING = ENDING | {"RUNNING", "SUSPENDED", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"}

background: list[tuple[subprocess.Popen, object, object]] = []


def shell(line: str, user: str = "root", timeout_s: float = 30) -> tuple[int, str, str]:
    """Runs a line to its end; code 124 if that takes too long."""
    process, out, err = spawn(line, user)
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        end(process)
        code = 124
    return code, content(out), content(err)


def spawn(line: str, user: str):
    """Starts a line in a session of its own."""
    entry = pwd.getpwnam(user)
    environment = {
        "PATH": os.environ["PATH"], "HOME": entry.pw_dir, "USER": user, "LOGNAME": user,
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen(
        ["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
        user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd=entry.pw_dir,
        start_new_session=True,
    )  # fmt: skip
    return process, out, err


def end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def content(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def jobs(after: int = 0) -> list[dict[str, str]]:
    """All jobs that Slurm remembers with an id beyond `after`."""
    code, out, err = shell(f"squeue -h -a -r -t all -o '{FORMAT}'")
    if code:
        raise RuntimeError(f"squeue: {err}")
    found = []
    for line in out.splitlines():
        job = dict(zip(FIELDS, line.split("|", len(FIELDS) - 1), strict=True))
        if int(job["id"]) > after or int(job["array"]) > after:
            found.append(job)
    return found


def clear(bound_s: float = 20) -> dict[str, object]:
    """A clean slate; `dirty` says what is left if it could not be had."""
    for process, out, err in background:
        end(process)
        out.close()
        err.close()
    background.clear()
    until = time.monotonic() + bound_s
    told = 0.0
    while True:
        now = time.monotonic()
        shown = shell(
            "squeue -h -a -t all -o '%A %T'; echo =; scontrol show res -o; echo ="
            "; sinfo -h -N -p all -o '%N %T'"
        )[1]
        parts = re.split(r"^=$\n", shown, flags=re.MULTILINE)
        if len(parts) != 3 or not parts[2]:  # slurmctld is being configured again
            if now > until:
                return {"last": 0, "dirty": "slurmctld does not answer"}
            time.sleep(0.2)
            continue
        queue, reservations, nodes = parts
        known = [line.split() for line in queue.splitlines()]
        here = sorted({one for one, state in known if state in WAITING | LIVING})
        names = re.findall(r"ReservationName=(\S+)", reservations)
        bad = sorted(
            {node for node, state in map(str.split, nodes.splitlines()) if state != "idle"}
        )
        if not (here or names or bad):
            return {"last": max((int(one) for one, _ in known), default=0)}
        if now > until:
            return {"last": 0, "dirty": f"jobs {here[:5]}, reservations {names}, nodes {bad}"}
        if here and now - told > 2:
            shell(f"scancel -Q {' '.join(here)}")
            told = now
        if not here:
            mend = [f"scontrol delete reservation {name}" for name in names]
            mend += [f"scontrol update NodeName={','.join(bad)} State=RESUME"] if bad else []
            shell("; ".join(mend))
        time.sleep(0.1)


def prepare(script: str, bound_s: float, wait: bool) -> dict[str, object]:
    """Runs a script as root and waits until all its jobs run."""
    code, out, err = shell(PREAMBLE + script, timeout_s=bound_s + 20)
    if code:
        return {"failed": f"exit code {code}: {(err or out).strip()[-300:]}", "last": 0}
    until = time.monotonic() + bound_s
    while True:
        found = jobs()
        waiting = [f"{job['id']} {job['why']}" for job in found if job["state"] in WAITING]
        late = time.monotonic() > until
        if late or not (wait and waiting):
            failed = f"not within {bound_s} s: start of {waiting}" if wait and waiting else ""
            return {"failed": failed, "last": max((int(job["id"]) for job in found), default=0)}
        time.sleep(0.1)


def submit(line: str, user: str, foreground: bool) -> dict[str, object]:
    """Runs a line; one in the background is left alone when it has had a moment to fail."""
    if foreground:
        code, out, err = shell(line, user)
        return {"code": code, "out": out, "err": err}
    background.append(spawn(line, user))
    return {}


def watch(after: int, count: int, until: str, bound_s: float) -> dict[str, object]:
    """Waits until at least `count` jobs have all started (or ended), `bound_s` at most."""
    begin = time.monotonic()
    started: dict[str, float] = {}
    while True:
        # Before the look at the jobs: a submission that fails in between has left one.
        over = bool(background) and all(p.poll() is not None for p, _, _ in background)
        found = jobs(after)
        for job in found:
            if job["state"] not in WAITING:
                started.setdefault(f"{job['id']}_{job['task']}", time.monotonic() - begin)
        open_states = WAITING | ENDING | {"RUNNING"} if until == "ended" else WAITING
        settled = len(found) >= count and not any(job["state"] in open_states for job in found)
        if not found and over:
            settled = True  # refused
        took = time.monotonic() - begin
        if settled or took > bound_s:
            return {
                "jobs": found, "settled": settled, "took_s": round(took, 2), "started_s": started
            }  # fmt: skip
        time.sleep(0.15)


def detail(ids: list[str]) -> dict[str, str]:
    """What scontrol shows of these jobs, one line each."""
    lines = shell("scontrol -o -d show job" + (f" {ids[0]}" if len(ids) == 1 else ""))[1]
    found = {}
    for line in lines.splitlines():
        match = re.match(r"JobId=(\d+)", line)
        if match and match[1] in ids:
            found[match[1]] = line
    return found


def reap() -> list[dict[str, object]]:
    """Submissions in the background: exit code (None: still there) and words."""
    return [{"code": p.poll(), "out": content(out), "err": content(err)}
            for p, out, err in background]  # fmt: skip


VERBS = {
    "clear": clear, "prepare": prepare, "submit": submit, "watch": watch, "detail": detail,
    "reap": reap,
    "run": lambda line, timeout_s=60: dict(
        zip(("code", "out", "err"), shell(line, timeout_s=timeout_s), strict=True)
    ),
}  # fmt: skip


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": VERBS[request.pop("verb")](**request)}
        except Exception as error:  # the other side decides what becomes of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
