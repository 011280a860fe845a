# SPDX-License-Identifier: Apache-2.0
"""Requests that the service does not model, under a FreePool and a limit, on a real cluster.

Rules
    1. A job that runs has nodes that its request allows: by Slurm's own records, and because Slurm,
       asked for the same on exactly these nodes (`sbatch --test-only`), does not refuse.
    2. No job has the node that the FreePool keeps, and no user more CPUs than the limit allows.
    3. A job that waits has a reason, and starts at the latest when no other runs, but for those
       of which the documentation says that they may not.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import pytest

from tests.integration.pooled_nodes import KEPT, MAX_CPUS, NODES, USABLE, USERS, pooled_nodes
from tests.integration.slurm import Cluster, expand, instant_s
from tests.integration.unmodelled_requests import BESIDE, REQUESTS, Held, Node, Request, dealt

NAME = os.environ.get("SCHEDBRIDGE_TEST_CLUSTER", "sbtest") + "unmodelled"
SEEDS = range(2)
RESERVED = ("n1", "n9", "n8")
EACH = 6
"""Jobs at the same time."""
SETTLED_S = 60
"""A start that Slurm refuses is tried elsewhere for twice `RETRY_S`, and then there again."""


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[Cluster]:
    with pooled_nodes(NAME) as cluster:
        yield cluster


@pytest.fixture
def pooled(module_cluster: Cluster) -> Cluster:
    """The cluster, empty again."""
    _empty(module_cluster)
    return module_cluster


def _empty(cluster: Cluster) -> None:
    cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    cluster.wait_empty()


# ---------------------------------------------------------------- what Slurm shows


def _nodes(cluster: Cluster) -> dict[str, Node]:
    found = {}
    for number, line in enumerate(cluster.run("scontrol", "show", "node", "-o").splitlines()):
        shown = dict(re.findall(r"(\w+)=(\S*)", line))
        features = frozenset(shown["AvailableFeatures"].split(","))
        found[shown["NodeName"]] = Node(
            number, int(shown["Sockets"]), features, int(shown["TmpDisk"])
        )
    return found


@dataclass(frozen=True)
class Shown:
    """One job as scontrol shows it."""

    id: str
    state: str
    reason: str
    user: str
    end_s: int
    cpus: dict[str, tuple[int, ...]]
    """The numbers of its CPUs by node."""

    @property
    def amount(self) -> int:
        return sum(map(len, self.cpus.values()))


def _jobs(cluster: Cluster) -> dict[str, Shown]:
    """All jobs that wait or run."""
    found = {}
    for line in cluster.run("scontrol", "show", "job", "-d", "-o").splitlines():
        shown = dict(re.findall(r"(\w+)=(\S*)", line.partition(" Nodes=")[0]))
        if shown.get("JobState") not in ("PENDING", "RUNNING"):
            continue
        cpus = {}
        for names, numbers in re.findall(r" Nodes=(\S+) CPU_IDs=(\S+) ", line):
            each = tuple(int(name[1:]) for name in expand(f"c[{numbers}]"))
            cpus |= dict.fromkeys(expand(names), each)
        end_s = instant_s(shown["EndTime"]) if cpus else 0
        user = shown["UserId"].partition("(")[0]
        found[shown["JobId"]] = Shown(
            shown["JobId"], shown["JobState"], shown["Reason"], user, end_s, cpus
        )
    return found


@dataclass(frozen=True)
class Submitted:
    """A job of one of the requests."""

    id: str
    user: str
    request: Request
    options: tuple[str, ...]
    width: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"job {self.id} of {self.user}: {' '.join(self.options)}"


def _submit(cluster: Cluster, dice: Random, request: Request) -> Submitted:
    options, width, names = request.drawn(dice)
    user = dice.choice(USERS)
    job = cluster.sbatch("-t60", *options, run="sleep 3600", user=user)
    return Submitted(job, user, request, options, width, names)


def _names_nodes(job: Submitted) -> bool:
    """Slurm 24.11 refuses `sbatch --test-only -w n1 -N2` even if all nodes are idle."""
    return "-w" in job.options


def _answer(cluster: Cluster, job: Submitted, *more: str) -> str:
    """What Slurm says to the same request."""
    words = ("sbatch", "--test-only", "-t60", *job.options, *more, "--wrap", "true")
    return cluster.process(*words, user=job.user).stderr


# ---------------------------------------------------------------- the rules


def _breach(cluster: Cluster, nodes: dict[str, Node], job: Submitted, shown: Shown) -> str:
    """How the nodes of a running job break its request; empty: they do not (1)."""
    names = tuple(sorted(shown.cpus, key=lambda name: nodes[name].number))
    held = Held(
        job.width,
        tuple(nodes[name] for name in names),
        names,
        tuple(shown.cpus[name] for name in names),
        job.names,
    )
    if not job.request.is_kept(held):
        return f"{job} has {shown.cpus}"
    if _names_nodes(job):
        return ""
    others = ",".join(name for name in NODES if name not in names)
    words = ("-x", others, f"-N{len(names)}")
    # A slurmctld that has just been started refuses until it has heard of all nodes.
    cluster.wait_for(
        f"Slurm to take {names} for {job}",
        lambda: " to start at " in _answer(cluster, job, *words),
        30,
    )
    return ""


def _judge(cluster: Cluster, jobs: Sequence[Submitted], judged: set[str]) -> list[str]:
    """Rules 1 and 2 for what runs; each job is compared with its request once.

    Returns:
        those that run.
    """
    shown, nodes = _jobs(cluster), _nodes(cluster)
    for job in jobs:
        now = shown.get(job.id)
        if now is not None and now.state == "RUNNING" and job.id not in judged:
            assert not (breach := _breach(cluster, nodes, job, now)), breach
            judged.add(job.id)
    used: Counter[str] = Counter()
    for each in shown.values():
        assert KEPT not in each.cpus, f"{each} has the node that is kept"
        used[each.user] += each.amount
    assert all(used[user] <= MAX_CPUS for user in USERS), f"{used} CPUs"
    return [job.id for job in jobs if job.id in shown and shown[job.id].state == "RUNNING"]


def _settle(cluster: Cluster, jobs: Sequence[Submitted]) -> None:
    """Waits until rule 3 holds."""
    wrong = ["nothing"]

    def is_settled() -> bool:
        shown = _jobs(cluster)
        waiting = [job for job in jobs if job.id in shown and shown[job.id].state == "PENDING"]
        without = [job for job in waiting if shown[job.id].reason in ("", "None")]
        if all(each.state == "PENDING" for each in shown.values()):
            without += [job for job in waiting if not job.request.may_stay]
        wrong[0] = "; ".join(map(str, without))
        return not wrong[0]

    try:
        cluster.wait_for("all jobs to start or wait as they must", is_settled, SETTLED_S)
    except AssertionError as error:
        raise AssertionError(f"no reason, or no start: {wrong[0]}\n{error}") from None


def _hold(cluster: Cluster, dice: Random, among: Sequence[str]) -> list[str]:
    """Jobs of both users on some of these nodes, one on each."""
    names = dice.sample(among, dice.randint(3, 5))
    script = "\n".join(
        f"su {USERS[at % 2]} -c 'sbatch --parsable -o /dev/null -t60 --exclusive -w {name} "
        '--wrap "sleep 3600"\''
        for at, name in enumerate(names)
    )
    jobs = cluster.root("sh", "-c", script).split()
    for job in jobs:
        cluster.wait_state(job, "RUNNING")
    return jobs


def _play(
    cluster: Cluster,
    dice: Random,
    requests: Sequence[Request],
    unreserved: Sequence[str] = USABLE,
) -> None:
    """Submits all beside other jobs, which end one by one, until none that can start waits."""
    held = _hold(cluster, dice, unreserved)
    jobs = [_submit(cluster, dice, request) for request in requests]
    if any(job.names for job in jobs):  # slurmctld forgets how it read them
        cluster.script("restart", "controller")
    judged: set[str] = set()
    while True:
        _settle(cluster, jobs)
        running = _judge(cluster, jobs, judged)
        if not (ending := [held.pop()] if held else running):
            break
        cluster.root("scancel", *ending)
    shown = _jobs(cluster)
    left = [job for job in jobs if job.id in shown]
    assert all(job.request.may_stay for job in left), f"{left} have not started"
    assert judged >= {job.id for job in jobs if job not in left}
    _empty(cluster)


@contextmanager
def _reservations(cluster: Cluster) -> Iterator[None]:
    """Of one node each, for both users; one draws in the jobs of anybody who may use it."""
    made = {"a": (), "b": (), "c": ("Flags=MAGNETIC",)}
    for (name, flags), node in zip(made.items(), RESERVED, strict=True):
        cluster.root(
            "scontrol", "create", "reservation", f"ReservationName={name}", "StartTime=now",
            "Duration=120", f"Users={','.join(USERS)}", f"Nodes={node}", *flags,
        )  # fmt: skip
    try:
        yield
    finally:
        _empty(cluster)
        for name in made:
            cluster.root("scontrol", "delete", f"ReservationName={name}")


def test_no_request_gets_nodes_that_break_it(pooled: Cluster) -> None:
    """Minutes: some forty jobs run for each seed, on real daemons."""
    for seed in SEEDS:
        dice = Random(seed)
        for requests in dealt(dice, EACH):
            _play(pooled, dice, requests)


def test_neither_does_one_beside_reservations(pooled: Cluster) -> None:
    dice = Random(1)
    requests = [*REQUESTS["--reservation=a,b"] * 2, *REQUESTS["--contiguous"], *BESIDE[:2]]
    with _reservations(pooled):
        _play(pooled, dice, requests, [name for name in USABLE if name not in RESERVED])
