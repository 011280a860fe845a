# SPDX-License-Identifier: Apache-2.0
"""Judges the history of a run. Imports nothing of `bridge`: it has its own idea of what is right.

| rule | what must hold |
|---|---|
| over | no node, licence, partition, reservation or array over what it may hold, at any start; no \
start against what the job asked for (width, begin, deadline, fixed start, features, hold) |
| rules | no start by the service adds to a limit that is reached, or takes what a FreePool keeps |
| twice | no job started twice, no decision given or applied twice, no start decided again while \
its fate is open, no outcome counted twice or as another one |
| sound | the service plans the world that it was told; what it decides can be carried out if \
nothing changed since |
| lost | after the last fault every job that could run has run, and whoever waits knows why |
| promise | under openccs an announced start moves later, or is withdrawn, only for a cause |
| memory | what is on disk is what was announced; a restart finds what was there before |
| answers | a true report is taken; who reports everything hears of every job that waits; \
nothing but documented errors; no policy fails |
| fence | no controller is served while one with a greater epoch was served a moment ago |

What openccs promises (docs/CONFIG.md, docs/TIMES.md): announced starts are kept. Causes to move one
later are those of `_CAUSES`: somebody changed the cluster, the rules, the policy or that job, or
let another job run longer; a job ran beyond its end or started late; Slurm started jobs itself; a
start was refused; the service lost its memory, or was told falsehoods. Tasks of arrays, starts
under predictions, and expected starts of jobs whose begin time has not come are not promised
(fixed starts are). Not judged are promises beside FreePools: whether kept starts
fit together there depends on the order in which they are booked.

A full report that is delayed, and overtaken by a later one, may be taken after a hello that is
delayed as well: the generation is no clock. What is known is then older than it was until the next
delta asks for everything; that is a cause, too (`Belief.older`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tests.simulation.whole.truth import (
    Broken,
    Job,
    Rule,
    Seen,
    Truth,
    head_of,
    holds_chunks,
    least_cpus,
)
from tests.simulation.whole.twice import Twice

GRACE_S = 60
FRESH_MS = 400  # a controller that was served so short a time ago is alive


def judge(events: Sequence[Seen]) -> list[Broken]:
    """Judges a whole history; what is broken, in the order of time."""
    found: list[Broken] = []
    rules = [kind() for kind in RULES]
    truth = Truth()
    for index, event in enumerate(events):
        for rule in rules:
            for text in rule.before(index, event, truth):
                found.append(Broken(rule.name, event.at_ms, text))
        truth.see(index, event)
        for rule in rules:
            for text in rule.after(index, event, truth):
                found.append(Broken(rule.name, event.at_ms, text))
    return found


# -------------------------------------------------------------------- over


class Over(Rule):
    name = "over"

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        if event.kind != "start":
            return
        job = truth.jobs.get(event.what["job"]) or truth.jobs.get(head_of(event.what["job"]))
        if job is None:
            yield f"job {event.what['job']} starts, which nobody submitted"
            return
        yield from self._requested(job, event.what, truth)

    def _requested(self, job: Job, what: dict[str, Any], truth: Truth) -> Iterable[str]:
        ask, now_s, nodes = job.ask, what["now_s"], what["nodes"]
        who = f"job {what['job']}"
        if job.held:
            yield f"{who} starts while it is held"
        if job.begin_s > now_s:
            yield f"{who} starts {job.begin_s - now_s} s before its begin time"
        if ask["fixed"] and now_s > job.begin_s + GRACE_S:
            yield f"{who} starts {now_s - job.begin_s} s after its fixed start"
        if ask["deadline_s"] and now_s + what["limit_s"] > ask["deadline_s"]:
            yield f"{who} may run {now_s + what['limit_s'] - ask['deadline_s']} s past its deadline"
        if what["limit_s"] > ask["limit_s"]:
            yield f"{who} gets a longer time limit than it asked for"
        if what["limit_s"] < (ask["least_s"] or ask["limit_s"]):
            yield f"{who} gets {what['limit_s']} s, less than it can do with"
        if what["partition"] not in ask["partitions"]:
            yield f"{who} starts in partition {what['partition']}, which it did not name"
        maximum = max(ask["most_nodes"], ask["nodes"])
        if not ask["chunks"] and not ask["nodes"] <= len(nodes) <= maximum:
            yield f"{who} gets {len(nodes)} nodes of {ask['nodes']} to {maximum}"
        if set(nodes) & set(ask["excluded"]):
            yield f"{who} gets a node that it excluded"
        wanted = ask["features"]
        for name in nodes:
            if wanted and wanted not in truth.nodes[name]["features"]:
                yield f"{who} gets {name}, which is not {wanted}"
        if job.array_most:
            run = sum(head_of(other.id) == job.id for other in truth.running())
            if run >= job.array_most:
                yield f"{who} starts though {run} tasks of the array run, as many as may"

    def after(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        if event.kind != "start":
            return
        job = truth.jobs[event.what["job"]]
        room = truth.partitions.get(job.partition)
        if room is None or not room["up"]:
            yield f"job {job.id} starts in partition {job.partition}, which is not up"
        elif not set(job.nodes) <= set(room["nodes"]):
            yield f"job {job.id} gets nodes of another partition"
        elif room["most_s"] and job.limit_s > room["most_s"]:
            yield f"job {job.id} gets more time than its partition allows"
        for name in job.nodes:
            yield from self._node(name, job, truth)
        for name, _ in job.ask["licences"]:
            used = sum(
                count
                for other in truth.running()
                for licence, count in other.ask["licences"]
                if licence == name
            )
            if used > truth.licences.get(name, 0):
                yield f"{used} of licence {name} are in use, there are {truth.licences.get(name)}"
        for item in truth.reservations.values():
            apart = item["end_s"] <= job.start_s or item["start_s"] >= job.start_s + job.limit_s
            shared = set(item["nodes"]) & set(job.nodes)
            if shared and not apart and job.ask["reservation"] != item["name"]:
                yield f"job {job.id} gets {min(shared)} of reservation {item['name']}"

    def _node(self, name: str, job: Job, truth: Truth) -> Iterable[str]:
        node = truth.nodes[name]
        here = [other for other in truth.jobs.values() if name in other.nodes]
        if not node["usable"]:
            yield f"job {job.id} gets {name}, which is not usable"
        if any(truth.whole(other) for other in here) and len(here) > 1:
            yield f"{name} is held exclusively and shared by jobs {[other.id for other in here]}"
        for resource, position in (("cpus", 0), ("memory_mib", 1)):
            used = sum(other.nodes[name][position] for other in here)
            if used > node[resource] and (position == 0 or truth.memory_counts):
                yield f"{name}: {used} of {node[resource]} {resource} used"


# -------------------------------------------------------------------- rules


class SiteRules(Rule):
    """Limits on amounts are not judged while a report told of less than the running jobs hold."""

    name = "rules"

    def __init__(self) -> None:
        self.belief = Belief(only=("two exclusive",))  # the only one that tells of less

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        self.belief.see(index, event)
        return ()

    def after(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        if event.kind != "start" or event.what["by"] != "service":
            return
        job = truth.jobs[event.what["job"]]
        for limit in truth.rules.get("limits", ()):
            if limit["resource"] == "jobs" or not self.belief.untrue:
                yield from self._limit(limit, job, truth)
        for pool in truth.rules.get("free_pools", ()):
            if not self.belief.untrue:
                yield from self._pool(pool, job, truth)

    def _limit(self, limit: dict[str, Any], job: Job, truth: Truth) -> Iterable[str]:
        kind = next(kind for kind in ("user", "account", "partition") if kind in limit)
        named = {one[kind] for one in truth.rules["limits"] if kind in one}
        own = getattr(job, kind)
        if limit[kind] != own and (limit[kind] != "*" or own in named):
            return
        together = [other for other in truth.running() if getattr(other, kind) == own]
        maximum = int(limit["items"])
        if limit["resource"] == "jobs":
            used = len(together)
        else:  # who takes whole nodes counts an average node when it is planned: at least what
            used = sum(other.cpus for other in together if other is not job)  # it asked for
            used += least_cpus(job.ask) if truth.whole(job) else job.cpus
        if used > maximum:
            yield f"{own} uses {used} {limit['resource']} with job {job.id}, the limit is {maximum}"

    def _pool(self, pool: dict[str, Any], job: Job, truth: Truth) -> Iterable[str]:
        if self._enters(pool, job) or any(not node["usable"] for node in truth.nodes.values()):
            return
        total = sum(node["cpus"] for node in truth.nodes.values())
        inside = sum(other.cpus for other in truth.running() if self._enters(pool, other))
        outside = sum(
            least_cpus(other.ask) if other is job and truth.whole(job) else other.cpus
            for other in truth.running()
            if not self._enters(pool, other)
        )
        kept = max(int(pool["keep"]) - inside, 0)
        if inside + outside + kept > total:
            yield (
                f"FreePool {pool['name']} keeps {kept} more CPUs, {total - inside - outside} are "
                f"free with job {job.id}"
            )

    def _enters(self, pool: dict[str, Any], job: Job) -> bool:
        return enters(pool, job.user, job.ask["limit_s"])


def enters(pool: dict[str, Any], user: str, limit_s: int) -> bool:
    """Whether a FreePool lets a job in; of access conditions only users and time are known."""
    for access in pool["access"]:
        if "users" in access and user in access["users"]:
            return True
        if "time" in access:
            minutes = int(re.fullmatch(r"<= (\d+)m", access["time"])[1])  # type: ignore[index]
            if limit_s <= 60 * minutes:
                return True
    return False


# -------------------------------------------------------------------- what the service may know


class Belief:
    """Whether what the service holds may be untrue, for it was told falsehoods.

    Attributes:
        only: falsehoods of these kinds only; empty: of any.
        untrue: so it may be.
    """

    def __init__(self, only: tuple[str, ...] = ()) -> None:
        self.only = only
        self.untrue = False
        self.reports: dict[int, tuple[int, dict[str, Any]]] = {}
        self.newest = 0

    def older(self, event: Seen) -> bool:
        """Whether a report was taken that a later one had overtaken; to be asked once per event."""
        if event.kind != "reply":
            return False
        overtaken = event.what["call"] < self.newest
        self.newest = max(self.newest, event.what["call"])
        return bool(overtaken)

    def see(self, index: int, event: Seen) -> None:
        what = event.what
        if event.kind == "report":
            self.reports[what["call"]] = (index, what)
            if what["untrue"] and (not self.only or what["untrue"] in self.only):
                self.untrue = True
        elif event.kind == "reply":
            _, report = self.reports.get(what["call"], (0, {}))
            if report and report["full"] and not report["untrue"]:
                self.untrue = False


_CHANGES = ("node", "partition", "licences", "reserve", "unreserve", "alter", "left", "end",
            "clean", "requeue", "clock", "submit")  # fmt: skip


class Sound(Rule):
    name = "sound"

    def __init__(self) -> None:
        self.belief = Belief()
        self.decided: dict[tuple[int, int], tuple[int, int]] = {}
        self.changed = -1
        self.worlds: dict[int, dict[str, Any]] = {}

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        self.belief.see(index, event)
        if event.kind in _CHANGES or (event.kind == "start" and what["by"] != "service"):
            self.changed = index
        elif event.kind == "report":
            self.worlds[what["call"]] = world_of(truth)
        elif event.kind == "reply":
            made, report = self.belief.reports.get(what["call"], (0, {}))
            if report and not self.belief.untrue:
                yield from self._world(what)
                choices = {start[0] for start in what["starts"] if not start[3]}
                for number in what["ids"]:
                    if number not in choices:  # what Slurm makes of a choice nobody knows before
                        self.decided[what["epoch"], number] = (made, report["now_s"])
        elif event.kind == "outcome" and what["outcome"] != "applied":
            made, now_s = self.decided.get((what["epoch"], what["decision"]), (-1, 0))
            shunned = "does not do" in what["text"]  # which was not reported
            if made > self.changed and now_s == truth.now_s and not shunned:
                yield (
                    f"decision {what['decision']} ({what['action']} of job {what['job']}) is "
                    f"{what['outcome']} though nothing changed: {what['text']}"
                )

    def _world(self, what: dict[str, Any]) -> Iterable[str]:
        known, told = what.get("known"), self.worlds[what["call"]]
        if not known:
            return
        for part in told:
            if known.get(part, told[part]) != told[part]:
                yield (
                    f"call {what['call']}: planned is {part} {known[part]}, told was {told[part]}"
                )


def world_of(truth: Truth) -> dict[str, Any]:
    """What a controller reports of a world, in short."""
    jobs = truth.jobs.values()
    return {
        "nodes": {n: node["cpus"] for n, node in truth.nodes.items() if node["usable"]},
        "waiting": sorted(job.id for job in jobs if job.state == "pending"),
        "begins": {job.id: job.begin_s for job in jobs if job.state == "pending"},
        "holding": sorted(job.id for job in jobs if job.state != "pending"),
        "rooms": {room["name"]: room["up"] for room in truth.partitions.values()},
    }


# -------------------------------------------------------------------- lost


class Lost(Rule):
    name = "lost"

    def after(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        if event.kind != "over":
            return
        for job in truth.jobs.values():
            if job.state != "pending":
                yield f"job {job.id} is {job.state} at the end"
            elif not job.told:
                yield f"job {job.id} waits and was never told why"
            elif not job.held and could_run(job, truth):
                yield f"job {job.id} could run and does not"


def could_run(job: Job, truth: Truth) -> bool:
    """Whether a job could run now on the empty cluster; False where that is hard to say."""
    ask, now_s = job.ask, truth.now_s
    if ask["fixed"] or ask["deadline_s"] or job.begin_s > now_s or ask["reservation"]:
        return False
    if any(count > truth.licences.get(name, 0) for name, count in ask["licences"]):
        return False
    return any(
        _fits(job, truth.partitions[name], truth)
        for name in ask["partitions"]
        if name in truth.partitions
    ) and _allowed(job, truth)


def _allowed(job: Job, truth: Truth) -> bool:
    whole = any(
        job.ask["exclusive"] or truth.partitions[name]["exclusive"]
        for name in job.ask["partitions"]
    )
    maximum = max(node["cpus"] for node in truth.nodes.values())
    needs = job.ask["nodes"] * maximum if whole else least_cpus(job.ask)
    if whole and job.ask["tasks"]:
        needs = job.ask["most_nodes"] * maximum
    for limit in truth.rules.get("limits", ()):
        if limit["resource"] == "cpus" and needs > int(limit["items"]):
            return False
    usable = sum(node["cpus"] for node in truth.nodes.values() if node["usable"])
    return all(
        enters(pool, job.user, job.ask["limit_s"]) or needs + int(pool["keep"]) <= usable
        for pool in truth.rules.get("free_pools", ())
    )


def _fits(job: Job, room: dict[str, Any], truth: Truth) -> bool:
    ask = job.ask
    if not room["up"] or (room["most_s"] and ask["limit_s"] > room["most_s"]):
        return False
    nodes = [
        truth.nodes[name]
        for name in room["nodes"]
        if truth.nodes[name]["usable"]
        and name not in ask["excluded"]
        and (not ask["features"] or ask["features"] in truth.nodes[name]["features"])
        and truth.nodes[name]["memory_mib"] >= ask["memory_mib"]
    ]
    room_of = sorted((node["cpus"] for node in nodes), reverse=True)
    if ask["chunks"]:
        return holds_chunks(ask, room_of)
    if ask["tasks"]:
        tasks = [cpus // ask["cpus"] for cpus in room_of][: max(ask["most_nodes"], ask["nodes"])]
        return sum(tasks) >= ask["tasks"] and sum(t > 0 for t in tasks) >= ask["nodes"]
    return sum(cpus >= ask["cpus"] for cpus in room_of) >= ask["nodes"]


# -------------------------------------------------------------------- promise

_CAUSES = ("node", "partition", "licences", "reserve", "unreserve", "clock", "rules", "policy",
           "requeue", "fallback")  # fmt: skip


class Promise(Rule):
    name = "promise"

    def __init__(self) -> None:
        self.belief = Belief()
        self.said: dict[str, tuple[int, int]] = {}
        self.cause = (-1, "")
        self.decided_s: dict[int, int] = {}
        self.started_s = 0
        self.starting: dict[str, int] = {}  # decided to start, when, and does not run yet
        self.late = -1  # when last a job did not run yet that was to

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        self.belief.see(index, event)
        if self.belief.older(event):
            self.cause = (index, "an older report was taken")
        if why := self._why(event, truth):
            self.cause = (index, why)
        match event.kind:
            case "report":
                yield from self._report(index, what, truth)
            case "left" | "alter" | "requeue":
                self.said.pop(what["job"], None)
                self.starting.pop(what["job"], None)
            case "start":
                self.starting.pop(what["job"], None)
                self.started_s = what["now_s"]
                said = self.said.pop(what["job"], (0, 0))[0]
                if said and what["now_s"] > said:
                    self.cause = (index, f"job {what['job']} started late")
            case "outcome" if what["action"] == "start" and what["outcome"] == "applied":
                # It follows its start; behind a slow call that is later than was planned.
                if self.started_s > self.decided_s.pop(what["decision"], self.started_s):
                    self.cause = (index, f"job {what['job']} started late")
            case "reply":
                if keeps(truth.policy) and not truth.rules.get("free_pools"):
                    yield from self._reply(index, what, truth)
                else:
                    self.said.clear()

    def _why(self, event: Seen, truth: Truth) -> str:
        what = event.what
        if event.kind in _CAUSES:
            return event.kind
        altered = truth.jobs.get(what["job"]) if event.kind == "alter" else None
        if altered is not None and what["ask"]["limit_s"] > altered.ask["limit_s"]:
            return f"the limit of job {altered.id} was raised"  # those behind it may have to wait
        if event.kind == "service_down" and what["how"] != "stopped":
            return "the service was killed"
        if event.kind == "service_down" and what.get("carried", {}) is None:
            return "the service could not write what it had announced"
        if event.kind == "start" and what["by"] == "slurm":  # by choice: it may delay nobody
            return f"Slurm started job {what['job']}"
        if event.kind == "outcome" and what["action"] == "start" and what["outcome"] != "applied":
            return f"a start of job {what['job']} was {what['outcome']}"
        if event.kind == "report" and what["untrue"]:
            return "a false report"
        if event.kind == "clean":
            job = truth.jobs[what["job"]]
            if what["now_s"] > job.start_s + job.limit_s:
                return f"job {job.id} was completing beyond its end"
        return ""

    def _report(self, index: int, what: dict[str, Any], truth: Truth) -> Iterable[str]:
        for job in truth.jobs.values():
            if job.state == "completing":  # nobody knows how long that takes
                self.cause = (index, f"job {job.id} is completing")
            elif job.state == "running" and job.start_s + job.limit_s <= what["now_s"]:
                self.cause = (index, f"job {job.id} is beyond its end")
        for job_id, (start_s, _) in self.said.items():
            if start_s < what["now_s"]:
                self.cause = (index, f"job {job_id} is late")
        return ()

    def _reply(self, index: int, what: dict[str, Any], truth: Truth) -> Iterable[str]:
        made, report = self.belief.reports.get(what["call"], (0, {}))
        if not report:
            return
        if any(at_s < report["now_s"] for at_s in self.starting.values()):
            self.late = index  # those behind it move with it
        for start in what["starts"]:
            self.decided_s[start[0]] = report["now_s"]
        for job_id, start_s in what["plans"].items():
            job = truth.jobs.get(job_id)
            before_s, since = self.said.pop(job_id, (0, 0))
            if job is None or job.array_tasks or job.touched > made or job.state != "pending":
                continue
            worse = before_s and (start_s == 0 or start_s > before_s)
            caused = self.cause[0] if job_id in self.starting else max(self.cause[0], self.late)
            if worse and caused < since and not self.belief.untrue:
                to = f"{start_s - before_s} s later" if start_s else "taken back"
                yield (
                    f"job {job_id}, announced for {before_s}, is {to} without a cause "
                    f"(the last one: {self.cause[1] or 'none'})"
                )
            if start_s and (job.ask["fixed"] or job.begin_s <= report["now_s"]):
                self.said[job_id] = (start_s, made)
        # Where the controller is to choose the nodes, it may choose none.
        self.starting |= {start[1]: report["now_s"] for start in what["starts"] if start[3]}


def keeps(policy: Any) -> bool:
    """Whether a policy promises the starts that it announces."""
    if isinstance(policy, str):
        return policy == "openccs"
    return policy.get("preset") == "openccs" and "predict" not in policy


# -------------------------------------------------------------------- memory


class Memory(Rule):
    name = "memory"

    def __init__(self) -> None:
        self.belief = Belief()
        self.left: dict[str, Any] | None = None
        self.carried: dict[str, int] | None = None
        self.states: list[dict[str, Any]] = []
        self.plans: dict[str, tuple[int, int]] = {}

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        match event.kind:
            case "reply":
                if self.belief.older(event):
                    self.plans.clear()
                for job_id, start_s in what["plans"].items():
                    if start_s:
                        self.plans[job_id] = (start_s, index)
            case "service_up":
                yield from self._up(what)
            case "service_down":
                yield from self._down(what)
                self.left, self.carried = what["on_disk"], what.get("carried")
            case "written" if not what["full"]:
                self.states.append(what["on_disk"])
                yield from self._content(what["on_disk"], truth)

    def _up(self, what: dict[str, Any]) -> Iterable[str]:
        found = what["on_disk"]
        if self.left is not None and "promises" in self.left and self.left != found:
            lost = len(self.left["promises"]) - len(found.get("promises", ()))
            yield f"after a restart {lost} of {len(self.left['promises'])} promises are missing"
        carried = what.get("carried")
        if self.carried is not None and carried is not None and carried != self.carried:
            yield f"a service that was stopped kept to {self.carried}, the next one to {carried}"
        self.states.append(found)  # a log may reach back beyond this life
        self.plans.clear()

    def _down(self, what: dict[str, Any]) -> Iterable[str]:
        found = what["on_disk"]
        if what.get("where", "").startswith("write"):  # nobody saw how far it came
            return
        if what["how"] == "killed" and len(self.states) > 1:
            if found != self.states[-1]:
                yield "a killed service leaves something else than was written last"
        elif what["how"] == "power" and found.get("promises") and found not in self.states:
            yield "after a loss of power there is what never was written"

    def _content(self, found: dict[str, Any], truth: Truth) -> Iterable[str]:
        if "promises" not in found:
            yield f"memory cannot be read: {found}"
            return
        rows = {row[0]: row[2] for row in found["promises"]}
        for job_id, (start_s, index) in self.plans.items():
            job = truth.jobs.get(job_id)
            if job is None or job.array_tasks or job.touched > index or job.state != "pending":
                continue
            if rows.get(job_id) != start_s:
                yield f"job {job_id} was announced for {start_s}, in memory is {rows.get(job_id)}"


# -------------------------------------------------------------------- answers


class Answers(Rule):
    name = "answers"

    def __init__(self) -> None:
        self.belief = Belief()
        self.full_disk = False
        self.good: dict[str, int] = {}
        self.disturbed = -1

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        was_untrue = self.belief.untrue
        self.belief.see(index, event)
        if self.belief.older(event):
            self.disturbed = index
        made, report = self.belief.reports.get(what.get("call", -1), (0, {}))
        match event.kind:
            case "exception":
                yield f"{what['method']} raises {what['text']}"
            case "reply" if report and report["full"] and what.get("known"):
                told = {start[1] for start in what["starts"]} | set(what["plans"])
                if silent := set(what["known"]["waiting"]) - told:
                    yield f"call {what['call']} tells everything, and hears nothing of {silent}"
            case "failed" if not self.belief.untrue:
                yield f"the policy failed: {what['notes']}"
            case "refused_call" if what["code"] == "INTERNAL":
                yield f"{what['method']} fails: {what['text']}"
            case "refused_call" if what["code"] == "INVALID_ARGUMENT" and report:
                if not report["untrue"] and not was_untrue:
                    yield f"a true report is refused: {what['text']}"
            case "disk":
                self.full_disk = what["full"]
            case "no_service" if not self.full_disk:
                yield f"the service does not start: {what['why']}"
            case "service_down" | "service_up" | "greeted" | "silence" | "clock":
                self.disturbed = index
            case "need_full" if report and report["untrue"]:  # perhaps late: nobody hears of it
                self.disturbed = index
            case "heard" if not what["good"]:
                since = self.good.get(what["name"], len(self.belief.reports) and index)
                if self.disturbed < since and not was_untrue and not report["untrue"]:
                    yield f"call {what['call']}: everything is asked for without a cause"
            case "heard":
                self.good[what["name"]] = made  # what happened while it was under way counts


class Fence(Rule):
    name = "fence"

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.of_call: dict[int, str] = {}
        self.served: dict[str, int] = {}

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        match event.kind:
            case "controller_up":
                self.epochs[what["name"]] = what["epoch"]
                self.served.pop(what["name"], None)
            case "controller_down":
                self.served.pop(what["name"], None)
            case "report":
                self.of_call[what["call"]] = what["name"]
            case "service_up":
                self.served.clear()
            case "reply":
                name = self.of_call.get(what["call"], "")
                for other, at_ms in self.served.items():
                    if self.epochs[other] > self.epochs[name] and event.at_ms - at_ms < FRESH_MS:
                        yield f"{name} is served though {other}, of a newer epoch, was just now"
                self.served[name] = event.at_ms


RULES: tuple[type[Rule], ...] = (
    Over, SiteRules, Twice, Sound, Lost, Promise, Memory, Answers, Fence,
)  # fmt: skip
