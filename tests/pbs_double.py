# SPDX-License-Identifier: Apache-2.0
"""A double of a PBS server behind its batch interface, in virtual time.

Like the real one it accepts nearly everything: starts on full, offline or unknown amounts, of held
jobs, beyond limits. Codes and states after a request are compared with a record of a real server
(`tests/unit/pbs/link/test_double.py`). It runs no policy, and leaves the states of vnodes alone.

An accepted start is in substate 41, and in 42 after `START_S`; unless a mom of its
vnodes is dead (the job is queued again, without a word) or frozen (it stays in 41).
A job that has run for its `runs_s` leaves, and the scheduler is told TERM.
"""

import re
from collections.abc import Sequence

from bridge.pbs.ifl.port import Code, Command, IflError, ReceivedCommand
from bridge.pbs.tables import Attributes, Objects

START_S = 0.1
_PART = re.compile(r"([^:()+]+)((?::[^:()+]+)*)")
_NO_COMMAND = -1


class Restarted(IflError):
    """The connection belongs to an earlier life of the server."""


class PbsDouble:
    """One server with its vnodes; an `Ifl`.

    Attributes:
        now: virtual time, Unix seconds.
        capacity: vnode to its amounts.
        jobs, vnodes, queues: attributes, as the interface states them.
        moms: vnode to "up", "dead" or "frozen".
        runs_s: job to how long it runs once started; others run for ever.
        history: (time, what, job, exec_vnode): "asked", "runs", "queued again", "ended".
        calls: names of the functions called, in order.
    """

    def __init__(self, vnodes: dict[str, dict[str, str]], now: float = 1_700_000_000.0) -> None:
        self.now = now
        self.capacity = vnodes
        self.vnodes: Objects = {
            name: {
                "Mom": name, "state": "free", "sharing": "default_shared", "resv_enable": "True",
                "ntype": "PBS", "resources_available": {"host": name, "vnode": name, **amounts},
                "resources_assigned": {},
            }
            for name, amounts in vnodes.items()
        }  # fmt: skip
        self.queues: Objects = {
            "workq": {"queue_type": "Execution", "enabled": "True", "started": "True"}
        }
        self.server: Attributes = {
            "scheduling": "True", "default_queue": "workq",
            "resources_default": {"ncpus": "1", "walltime": "01:00:00"},
            "default_chunk": {"ncpus": "1"},
        }  # fmt: skip
        self.reservations: Objects = {}
        self.jobs: Objects = {}
        self.moms = dict.fromkeys(vnodes, "up")
        self.runs_s: dict[str, float] = {}
        self.history: list[tuple[float, str, str, str]] = []
        self.calls: list[str] = []
        self.answers: list[tuple[str, int]] = []
        self.up = True
        self._life = 0
        self._next_handle, self._next_job = 10, 0
        self._open: dict[int, int] = {}
        self._registered: tuple[int, int] | None = None
        self._waiting: set[int] = set()
        self._sent: list[ReceivedCommand] = []
        self._in_cycle = False
        self._began: dict[str, float] = {}

    # ------------------------------------------------------------ what users and machines do

    def submit(self, select: str, runs_s: float = 0.0, **attributes: str) -> str:
        """Submits a job; returns its id."""
        job_id = f"{self._next_job}.srv"
        self._next_job += 1
        limit = attributes.pop("walltime", "01:00:00")
        place = attributes.pop("place", "free")
        ncpus = sum(
            int(count or 1) * int(dict(_amounts(rest)).get("ncpus", 1))
            for count, rest in (_chunk(part) for part in select.split("+"))
        )
        self.jobs[job_id] = {
            "job_state": "Q", "substate": "10", "queue": "workq", "Job_Name": "job",
            "Job_Owner": "alice@srv", "euser": "alice", "egroup": "alice", "Priority": "0",
            "project": "_pbs_project_default", "schedselect": select, "Hold_Types": "n",
            "Rerunable": "True", "ctime": str(int(self.now)), "qtime": str(int(self.now)),
            "etime": str(int(self.now)), "queue_rank": str(int(self.now * 1e6) + self._next_job),
            "Resource_List": {"select": select, "place": place, "walltime": limit,
                              "ncpus": str(ncpus), "nodect": "1"},
            **attributes,
        }  # fmt: skip
        if runs_s:
            self.runs_s[job_id] = runs_s
        self._touch(job_id)
        self.tell(Command.NEW)
        return job_id

    def hold(self, job_id: str) -> None:
        """`qhold`: no command is sent."""
        self._set(job_id, job_state="H", substate="20", Hold_Types="u")

    def delete_job(self, job_id: str) -> None:
        """`qdel`."""
        self._leave(job_id, "deleted")

    def kill_mom(self, vnode: str) -> None:
        """Its mom dies: the node is down, no command is sent, its jobs stay."""
        self.moms[vnode] = "dead"
        self.vnodes[vnode] = {**self.vnodes[vnode], "state": "down"}

    def revive_mom(self, vnode: str) -> None:
        """Its mom is back: jobs that were there are queued again, with NEW."""
        self.moms[vnode] = "up"
        self.vnodes[vnode] = {**self.vnodes[vnode], "state": "free"}
        for job_id, job in list(self.jobs.items()):
            if vnode in dict(parts_of(str(job.get("exec_vnode", "")))):
                self._requeue(job_id)
                self.tell(Command.NEW)

    def freeze_mom(self, vnode: str) -> None:
        """Its mom does not answer, and the node stays free."""
        self.moms[vnode] = "frozen"

    def restart(self) -> None:
        """Loses connections and registration; jobs in substate 41 are queued again."""
        self._life += 1
        self._registered = None
        self._sent.clear()
        self._waiting.clear()
        for job_id, job in list(self.jobs.items()):
            if job["substate"] == "41":
                self._requeue(job_id)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        until = self.now + seconds
        while (moment := self._next_event()) <= until:
            self.now = max(self.now, moment)
            self._happen()
        self.now = until

    def _next_event(self) -> float:
        return min(
            (at for job_id in self.jobs if (at := self._due(job_id)) is not None),
            default=float("inf"),
        )

    def _due(self, job_id: str) -> float | None:
        job, began = self.jobs[job_id], self._began.get(job_id)
        if job["job_state"] != "R" or began is None:
            return None
        states = {self.moms.get(name, "up") for name, _ in parts_of(str(job["exec_vnode"]))}
        if states != {"up"}:
            return None
        if job["substate"] == "41":
            return began + START_S
        runs_s = self.runs_s.get(job_id)
        return None if runs_s is None else began + START_S + runs_s

    def _happen(self) -> None:
        for job_id in list(self.jobs):
            at = self._due(job_id)
            if at is None or at > self.now:
                continue
            if self.jobs[job_id]["substate"] == "41":
                self._set(job_id, substate="42", stime=str(int(self.now)))
                self._note("runs", job_id)
            else:
                self._leave(job_id, "ended")
                self.tell(Command.TERM)

    # ------------------------------------------------------------ bookkeeping

    def _note(self, what: str, job_id: str) -> None:
        where = str(self.jobs.get(job_id, {}).get("exec_vnode", ""))
        self.history.append((self.now, what, job_id, where))

    def _touch(self, job_id: str) -> None:
        self.jobs[job_id] = {**self.jobs[job_id], "mtime": str(int(self.now))}

    def _set(self, job_id: str, **attributes: str) -> None:
        self.jobs[job_id] = {**self.jobs[job_id], **attributes}
        self._touch(job_id)

    def _leave(self, job_id: str, what: str) -> None:
        self._note(what, job_id)
        job = self.jobs.pop(job_id)
        self._began.pop(job_id, None)
        parent = job.get("array_id")
        if isinstance(parent, str) and parent in self.jobs:
            self._touch(parent)

    def _requeue(self, job_id: str) -> None:
        self._note("queued again", job_id)
        job = dict(self.jobs[job_id])
        for name in ("exec_vnode", "stime"):
            job.pop(name, None)
        self.jobs[job_id] = {**job, "job_state": "Q", "substate": "10"}
        self._began.pop(job_id, None)
        self._touch(job_id)

    def tell(self, command: int, job_id: str = "") -> None:
        """Sends a command; until the last one is answered, commands are merged."""
        if self._registered is None:
            return
        if command == Command.AJOB:
            self._sent.append(ReceivedCommand(command, job_id))
        elif self._in_cycle or self._sent:
            self._waiting.add(command)
        else:
            self._sent.append(ReceivedCommand(command))

    @property
    def has_command(self) -> bool:
        """Whether one has arrived at the scheduler."""
        return bool(self._sent)

    @property
    def registered(self) -> tuple[int, int] | None:
        """The connections of the registered scheduler."""
        return self._registered

    # ------------------------------------------------------------ the interface

    def _call(self, name: str, connection: int) -> None:
        self.calls.append(name)
        if not self.up or self._open.get(connection) != self._life:
            raise IflError(name, Code.LOST, "the connection has ended")

    def connect(self, server: str) -> int:
        del server
        if not self.up:
            raise IflError("connection", Code.NO_SERVER, "refused")
        self._next_handle += 1
        self._open[self._next_handle] = self._life
        return self._next_handle

    def disconnect(self, connection: int) -> None:
        self._open.pop(connection, None)
        if self._registered is not None and connection in self._registered:
            self._registered = None
            self._sent.clear()

    def register(self, scheduler: str, primary: int, secondary: int) -> int:
        del scheduler
        if self._open.get(primary) != self._life or self._open.get(secondary) != self._life:
            return Code.LOST
        if self._registered is not None:
            return Code.SCHEDULER_CONNECTED
        self._registered, self._in_cycle = (primary, secondary), False
        self.tell(Command.CONFIGURE)
        self.tell(Command.FIRST)
        return Code.NONE

    def read_command(self, secondary: int) -> ReceivedCommand | None:
        if self._open.get(secondary) != self._life or not self._sent:
            return None
        self._in_cycle = True
        return self._sent.pop(0)

    def end_cycle(self, secondary: int) -> bool:
        self._in_cycle = False
        if self._waiting:
            command = min(self._waiting)
            self._waiting.clear()
            self.tell(command)
        return self._open.get(secondary) == self._life

    def stat_server(self, connection: int) -> tuple[str, Attributes]:
        self._call("stat_server", connection)
        return "srv", {
            **self.server,
            # What has ended counts as well while the server keeps its history.
            "total_jobs": str(self._next_job),
            "state_count": f"Transit:0 Queued:{len(self.jobs)} Held:0 Running:0 ",
        }

    def stat_scheduler(self, connection: int, name: str) -> Attributes:
        self._call("stat_scheduler", connection)
        state = "down" if self._registered is None else "idle"
        found: Attributes = {"partition": "pbs-default", "scheduling": "True", "state": state}
        return found if name == "default" else {}

    def stat_queues(self, connection: int) -> Objects:
        self._call("stat_queues", connection)
        return {name: dict(queue) for name, queue in self.queues.items()}

    def stat_vnodes(self, connection: int) -> Objects:
        self._call("stat_vnodes", connection)
        return {name: dict(vnode) for name, vnode in self.vnodes.items()}

    def stat_reservations(self, connection: int) -> Objects:
        self._call("stat_reservations", connection)
        return {name: dict(found) for name, found in self.reservations.items()}

    def stat_resources(self, connection: int) -> Objects:
        self._call("stat_resources", connection)
        return {
            "ncpus": {"type": "long", "flag": "hqnm"}, "mem": {"type": "size", "flag": "hqnm"},
            "host": {"type": "string", "flag": "h"}, "vnode": {"type": "string", "flag": "h"},
            "walltime": {"type": "long", "flag": ""}, "select": {"type": "string", "flag": ""},
            "place": {"type": "string", "flag": ""}, "nodect": {"type": "long", "flag": ""},
        }  # fmt: skip

    def stat_jobs(
        self, connection: int, attributes: Sequence[str], *, changed_since_s: int = 0
    ) -> Objects:
        self._call("stat_jobs", connection)
        return {
            job_id: {n: v for n, v in job.items() if not attributes or n in attributes}
            for job_id, job in self.jobs.items()
            if int(str(job["mtime"])) >= changed_since_s
        }

    def stat_ended(self, connection: int, job_ids: Sequence[str]) -> Objects:
        self._call("stat_ended", connection)
        ended = {job_id for _, what, job_id, _ in self.history if what == "ended"}
        return {job_id: {"Exit_status": "271"} for job_id in job_ids if job_id in ended}

    def start_cycle(self, connection: int) -> int:
        self._call("start_cycle", connection)
        self.tell(Command.CMD)
        return Code.NONE

    def run(self, connection: int, job_id: str, exec_vnode: str) -> int:
        self._call("run", connection)
        task = re.fullmatch(r"(\d+)\[(\d+)\](\.\w+)", job_id)
        if task is not None and job_id not in self.jobs:
            self._make_task(job_id, f"{task[1]}[]{task[3]}", task[2])
        job = self.jobs.get(job_id)
        if job is None:
            return Code.UNKNOWN_JOB
        if job.get("array") == "True":
            return Code.INVALID_REQUEST
        if job["job_state"] == "R":
            return Code.BAD_STATE
        parts = parts_of(exec_vnode)
        if any(name not in self.vnodes for name, _ in parts):
            return Code.UNKNOWN_NODE
        known = self.stat_resources(connection)
        if any(resource not in known for _, taken in parts for resource in taken):
            return Code.UNKNOWN_RESOURCE
        if any("job-exclusive" in str(self.vnodes[name]["state"]) for name, _ in parts):
            return Code.UNAVAILABLE
        ran = int(str(job.get("run_count", "0"))) + 1
        self._set(job_id, job_state="R", substate="41", exec_vnode=exec_vnode, run_count=str(ran))
        self._began[job_id] = self.now
        self._note("asked", job_id)
        if any(self.moms[name] == "dead" for name, _ in parts):
            self._requeue(job_id)
        return Code.NONE

    def _make_task(self, job_id: str, array_id: str, index: str) -> None:
        array = self.jobs.get(array_id)
        if array is None:
            return
        task = {n: v for n, v in array.items() if not n.startswith("array")}
        self.jobs[job_id] = {**task, "array_id": array_id, "array_index": index, "job_state": "Q",
                             "substate": "10"}  # fmt: skip
        left = [w for w in str(array["array_indices_remaining"]).split(",") if w != index]
        self._set(array_id, job_state="B", substate="70",
                  array_indices_remaining=",".join(left) or "-")  # fmt: skip
        self.runs_s[job_id] = self.runs_s.get(array_id, 1.0)

    def alter(self, connection: int, job_id: str, attributes: Attributes) -> int:
        self._call("alter", connection)
        if job_id in self.jobs:
            self.jobs[job_id] = {**self.jobs[job_id], **attributes}
            self._touch(job_id)
        return Code.NONE

    def alter_checked(self, connection: int, job_id: str, attributes: Attributes) -> int:
        return self.alter(connection, job_id, attributes)

    def signal(self, connection: int, job_id: str, signal: str) -> int:
        self._call("signal", connection)
        if job_id not in self.jobs:
            return Code.UNKNOWN_JOB
        if signal == "resume":
            self._set(job_id, job_state="R", substate="42")
        return Code.NONE

    def rerun(self, connection: int, job_id: str) -> int:
        self._call("rerun", connection)
        self._requeue(job_id)
        return Code.NONE

    def delete(self, connection: int, job_id: str, text: str) -> int:
        self._call("delete", connection)
        del text
        if job_id not in self.jobs:
            return Code.UNKNOWN_JOB
        self._leave(job_id, "deleted")
        return Code.NONE

    def release_nodes(self, connection: int, job_id: str, vnodes: str) -> int:
        self._call("release_nodes", connection)
        del vnodes
        return Code.NONE if self.jobs[job_id]["substate"] == "42" else Code.BAD_STATE

    def confirm_reservation(
        self, connection: int, name: str, location: str, start_s: int, extend: str
    ) -> int:
        self._call("confirm_reservation", connection)
        del start_s
        if "SUCCESS" not in extend:
            self.reservations.pop(name, None)
        else:
            self.reservations[name] = {
                **self.reservations[name], "reserve_state": "2", "resv_nodes": location,
            }  # fmt: skip
        return Code.NONE

    def answer_run(self, connection: int, job_id: str, code: int, said: str) -> int:
        self._call("answer_run", connection)
        del said
        self.answers.append((job_id, code))
        return Code.NONE


def parts_of(exec_vnode: str) -> list[tuple[str, dict[str, str]]]:
    """The vnodes of `(n1:ncpus=2)+(n2:ncpus=1+n3:ncpus=1)` with their amounts."""
    return [(name, dict(_amounts(rest))) for name, rest in _PART.findall(exec_vnode)]


def _amounts(text: str) -> list[tuple[str, str]]:
    return [(n, v) for n, _, v in (word.partition("=") for word in text.split(":") if "=" in word)]


def _chunk(text: str) -> tuple[str, str]:
    count, _, rest = text.partition(":")
    return (count, rest) if count.isdecimal() else ("1", text)
