# SPDX-License-Identifier: Apache-2.0
"""What happens in a run, drawn from its seed. Nothing here looks at what came of it."""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.whole.cluster import Ask
from tests.simulation.whole.schedule import FIRST_S

STORM_MS = 20 * 60_000
"""How long things go wrong, and users submit."""

USERS = (("alice", "phys"), ("bob", "chem"), ("carol", "phys"))

POLICIES: tuple[Any, ...] = (
    "openccs", "openccs", "openccs", "openccs", "slurm-like", "slurm-like", "easy", "conservative",
    {"preset": "search", "plan": {"budget_ms": 0, "effort": 300, "window": 20}},
    {"preset": "openccs", "plan": {"deadline": "late"}},
    {"preset": "slurm-like", "plan": {"name": "window", "period_s": 0}},
    {"preset": "slurm-like", "predict": "last-two"},
    {"preset": "openccs", "place": "best-fit", "predict": "name-history"},
)  # fmt: skip

WINDS = (
    "users", "nodes", "network", "crashes", "disk", "clocks", "untrue", "second", "operators",
    "races",
)  # fmt: skip
"""Kinds of trouble; a run has some of them, or none."""


@dataclass(frozen=True)
class Step:
    """Something done from outside."""

    at_ms: int
    kind: str
    what: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.at_ms / 1000:>10.3f}  {self.kind:<12} {self.what}"


@dataclass(frozen=True)
class Script:
    """A run.

    Attributes:
        winds: kinds of trouble in it.
        nodes: (name, cpus, memory, features).
        partitions: (name, nodes, longest time, exclusive).
        steps: by time.
    """

    seed: int
    winds: tuple[str, ...]
    nodes: tuple[tuple[str, int, int, tuple[str, ...]], ...]
    partitions: tuple[tuple[str, tuple[str, ...], int, bool], ...]
    licences: dict[str, int]
    policy: Any
    rules: dict[str, Any]
    memory_counts: bool
    clean_ms: int
    base_ms: int
    steps: tuple[Step, ...]


def draw(seed: int) -> Script:
    """The script of a seed."""
    return _Drawer(seed).script()


class _Drawer:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(f"script {seed}")
        dice = self.dice
        calm = dice.random() < 0.25
        some = dice.randint(1, 4) if dice.random() < 0.8 else len(WINDS)
        self.winds = () if calm else tuple(dice.sample(WINDS, some))
        self.names = [f"n{number + 1}" for number in range(dice.randint(2, 7))]
        self.steps: list[Step] = []
        self.arrays: list[str] = []

    def script(self) -> Script:
        dice, names = self.dice, self.names
        nodes = tuple(
            (name, dice.choice((2, 4, 8)), dice.choice((1000, 4000)),
             tuple(f for f in ("x", "y") if dice.random() < 0.6))
            for name in names
        )  # fmt: skip
        partitions = [("all", tuple(names), 0, False)]
        if dice.random() < 0.5:
            part = tuple(sorted(dice.sample(names, dice.randint(1, len(names)))))
            partitions.append(("part", part, dice.choice((0, 900)), dice.random() < 0.3))
        self.rooms = [room[0] for room in partitions]
        self._jobs()
        for wind in self.winds:
            getattr(self, f"_{wind}")()
        if dice.random() < 0.3:
            self._reservation()
        return Script(
            seed=self.seed,
            winds=self.winds,
            nodes=nodes,
            partitions=tuple(partitions),
            licences={"lic": dice.randint(1, 3)},
            policy=dice.choice(POLICIES),
            rules=self._rules() if dice.random() < 0.4 else {},
            memory_counts=dice.random() < 0.7,
            clean_ms=dice.choice((0, 0, 0, 1_000, 3_000)),
            base_ms=dice.choice((0, 0, 1, 20)) if self.winds else 0,
            steps=tuple(sorted(self.steps, key=lambda step: step.at_ms)),
        )

    def _step(self, at_ms: int, kind: str, **what: Any) -> None:
        self.steps.append(Step(at_ms, kind, what))

    def _when(self) -> int:
        return self.dice.randrange(1_000, STORM_MS)

    def _soon_s(self) -> int:
        return FIRST_S + self.dice.randrange(0, STORM_MS // 1000 + 600)

    # ------------------------------------------------------------ jobs

    def _jobs(self) -> None:
        dice = self.dice
        for number in range(1, dice.randint(6, 24) + 1):
            at_ms = dice.choice((0, self._when(), self._when()))
            user, account = dice.choice(USERS)
            array = dice.randint(2, 6) if dice.random() < 0.12 else 0
            fixed = not array and dice.random() < 0.06
            begin_s = self._soon_s() if fixed or dice.random() < 0.12 else 0
            limit_s = dice.choice((60, 120, 300, 300, 600, 900))
            ask = self._ask(limit_s, fixed, array)
            held = dice.random() < 0.06
            self._step(
                at_ms, "submit", job=str(number), user=user, account=account, ask=ask,
                run_s=max(int(limit_s * dice.choice((0.2, 0.5, 0.9, 1, 1, 2))), 1),
                priority=dice.randint(1, 5) * 100, begin_s=begin_s, held=held,
                array_tasks=array, array_most=dice.choice((0, 1, 2)) if array else 0,
            )  # fmt: skip
            if held and dice.random() < 0.7:
                self._step(at_ms + dice.randrange(1_000, 600_000), "alter", job=str(number),
                           changes={"held": False})  # fmt: skip
        self.n_jobs = number

    def _ask(self, limit_s: int, fixed: bool, array: int) -> Ask:
        dice, n = self.dice, len(self.names)
        low = dice.choice((1, 1, 1, 2, min(3, n)))
        kind = dice.choice(("nodes", "nodes", "tasks", "whole", "chunks", "wide"))
        common: dict[str, Any] = {
            "partitions": tuple(dice.sample(self.rooms, dice.randint(1, len(self.rooms)))),
            "limit_s": limit_s,
            "fixed": fixed,
            "licences": (("lic", 1),) if dice.random() < 0.15 else (),
        }
        if not array and not fixed and dice.random() < 0.08:
            common["deadline_s"] = self._soon_s() + limit_s
            common["least_s"] = 60 if limit_s > 60 and dice.random() < 0.5 else 0
        if kind == "chunks" and not array:
            count, cpus = dice.randint(1, 3), dice.choice((1, 2))
            more = dice.random() < 0.4
            text = f"{count}:ncpus={cpus}" + ("+1:ncpus=1" if more else "")
            place = dice.choice(("free", "free", "pack", "scatter"))
            total = count * cpus + (1 if more else 0)
            return Ask(**common, chunks=text, place=place, tasks=total, cpus=1,
                       nodes=1, most_nodes=total)  # fmt: skip
        common["features"] = dice.choice(("", "", "", "x"))
        common["excluded"] = (dice.choice(self.names),) if dice.random() < 0.08 else ()
        if kind == "tasks":
            return Ask(**common, tasks=dice.randint(2, 6), cpus=dice.choice((1, 2)), nodes=1,
                       most_nodes=n)  # fmt: skip
        memory = dice.choice((0, 0, 500, 900))
        if n > 2 and dice.random() < 0.1:  # what Slurm would start on some nodes only, unsaid
            common |= {"partitions": ("all",), "features": "", "excluded": ()}
            shuns = (dice.choice(self.names),)
            return Ask(**common, shuns=shuns, unsaid=dice.random() < 0.3)
        if kind == "wide":
            return Ask(**common, nodes=low, most_nodes=min(low + 2, n), cpus=dice.choice((1, 2)),
                       memory_mib=memory)  # fmt: skip
        return Ask(
            **common, nodes=low, most_nodes=low, cpus=dice.choice((1, 1, 2)), memory_mib=memory,
            exclusive=kind == "whole",
        )  # fmt: skip

    def _users(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(2, 10)):
            job, at_ms = str(dice.randint(1, self.n_jobs)), self._when()
            match dice.randrange(5):
                case 0 | 1:
                    self._step(at_ms, "cancel", job=job)
                case 2:
                    self._step(at_ms, "alter", job=job,
                               changes={"limit_s": dice.choice((60, 300, 1200))})  # fmt: skip
                case 3:
                    self._step(at_ms, "alter", job=job, changes={"held": dice.random() < 0.5})
                case 4:
                    self._step(at_ms, "alter", job=job,
                               changes={"priority": dice.randint(1, 9) * 100})  # fmt: skip

    # ------------------------------------------------------------ what goes wrong

    def _nodes(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 6)):
            name, at_ms = dice.choice(self.names), self._when()
            kind = dice.choice(("node_down", "node_down", "drain", "resize"))
            if kind == "resize":
                self._step(at_ms, kind, node=name, cpus=dice.choice((1, 2, 4, 8, 16)))
                continue
            self._step(at_ms, kind, node=name)
            self._step(at_ms + dice.randrange(1_000, 600_000), "node_back", node=name)
        if dice.random() < 0.3:  # nodes that come and go, more often than one change may be lost
            at_ms, there = dice.randrange(1_000, STORM_MS // 3), dict.fromkeys(self.names, True)
            for flap in range(90):
                name = dice.choice(self.names)
                there[name] = not there[name]
                self._step(at_ms + flap * 8_000, "node_back" if there[name] else "drain", node=name)
        if dice.random() < 0.3:
            at_ms = self._when()
            self._step(at_ms, "licences", total={"lic": dice.randint(0, 4)})
        if dice.random() < 0.3:
            at_ms, room = self._when(), dice.choice(self.rooms)
            self._step(at_ms, "partition", name=room, up=False)
            self._step(at_ms + dice.randrange(1_000, 300_000), "partition", name=room, up=True)

    def _network(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 3)):
            at_ms = self._when()
            weather = {
                name: dice.choice((0, 0.1, 0.5)) for name in ("lost", "lost_reply", "doubled",
                                                             "late")
            }  # fmt: skip
            weather["most_late_ms"] = dice.choice((100, 3_000, 20_000))
            self._step(at_ms, "weather", **weather)
            self._step(at_ms + dice.randrange(1_000, 400_000), "weather")

    def _crashes(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 4)):
            at_ms, again_ms = self._when(), dice.choice((500, 3_000, 60_000))
            match dice.randrange(4):
                case 0:
                    self._step(at_ms, "stop", again_ms=again_ms)
                case 1:
                    self._step(at_ms, "controller", again_ms=again_ms)
                case _:
                    self._step(
                        at_ms, "kill", what=dice.choice(("call", "call", "write")),
                        line=int(10 ** dice.uniform(0, 4.5)),
                        cut=dice.random() if dice.random() < 0.4 else None, again_ms=again_ms,
                    )  # fmt: skip

    def _disk(self) -> None:
        dice = self.dice
        at_ms = self._when()
        self._step(at_ms, "disk", full=True)
        if dice.random() < 0.5:
            self._step(at_ms + 5_000, "stop", again_ms=2_000)
        self._step(at_ms + dice.randrange(1_000, 600_000), "disk", full=False)

    def _clocks(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 3)):
            seconds = dice.choice((1, 2, 30, 600, 3600)) * dice.choice((-1, 1))
            who = dice.choice(("controller", "controller", "service"))
            at_ms = self._when()
            self._step(at_ms, "clock", who=who, seconds=seconds)
            if dice.random() < 0.4:
                self._step(at_ms + 2_000, "controller", again_ms=3_000)

    def _untrue(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 5)):
            self._step(self._when(), "untrue", which=dice.choice(UNTRUE), times=dice.randint(1, 3))

    def _second(self) -> None:
        dice = self.dice
        at_ms = self._when()
        epoch = dice.choice(("newer", "older", "absurd"))
        self._step(at_ms, "second", epoch=epoch, for_ms=dice.choice((1_000, 30_000, 120_000)))

    def _operators(self) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 3)):
            if dice.random() < 0.5:
                name = dice.choice(("openccs", "slurm-like", "easy", "conservative"))
                self._step(self._when(), "policy", name=name)
            else:
                self._step(self._when(), "rules", rules=self._rules())
        if dice.random() < 0.5:
            self._reservation()

    def _races(self) -> None:
        for _ in range(self.dice.randint(1, 6)):
            self._step(self._when(), "race", which=self.dice.choice(RACES))

    def _reservation(self) -> None:
        dice = self.dice
        at_ms, start_s = self._when(), self._soon_s()
        nodes = tuple(sorted(dice.sample(self.names, dice.randint(1, len(self.names)))))
        name = f"r{len(self.steps)}"
        self._step(at_ms, "reserve", name=name, start_s=start_s,
                   end_s=start_s + dice.randrange(60, 900), nodes=nodes)  # fmt: skip

    def _rules(self) -> dict[str, Any]:
        dice, rules = self.dice, {}
        if dice.random() < 0.8:
            user = dice.choice(("alice", "bob", "*"))
            limit: dict[str, Any] = {"user": user, "resource": "cpus",
                                     "items": str(dice.choice((2, 4, 8)))}  # fmt: skip
            rules["limits"] = [limit]
            if dice.random() < 0.4:
                rules["limits"].append({"account": "phys", "resource": "jobs", "items": "2"})
        if dice.random() < 0.3:
            rules["free_pools"] = [
                {"name": "short", "resource": "cpus", "keep": "2",
                 "access": [{"time": "<= 2m"}, {"users": ["carol"]}]}
            ]  # fmt: skip
        return rules


RACES = ("cancel", "hold", "limit", "drain", "partition")
"""What happens to a job, or a node, after the service has decided to start it there."""

UNTRUE = (
    "job twice", "unknown node", "too many cpus", "negative time", "no version", "future start",
    "bad id", "unknown partition", "two exclusive", "generation", "time leaps", "nan",
    "unknown hold",
)  # fmt: skip
