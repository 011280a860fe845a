# SPDX-License-Identifier: Apache-2.0
"""The rules of a site read as they are written: every second, every job, by hand.

Shares nothing with planners and judge: no column, no sweep, no lowering. Slow on purpose.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

from bridge.extensions.power.rules import power_of
from bridge.model.job import WidthRule
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.model.rules.limits import TIME, Access, Bound, FreePool, Limit, Validity
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED
from tests.properties.naive_power import broken_power

ALSO = {"mem": "mem_mib", "ncpus": "cpus", "cores": "cpus", "vmem": "mem_mib"}


@dataclass
class Held:
    """A job on its nodes: one that runs, or a row of the plan."""

    row: int  # -1: it runs
    start_s: int
    end_s: int
    who: Mapping[str, str]
    requested: dict[str, int]
    taken: dict[str, int]
    whole: bool
    limit_s: int = 0
    nodes: dict[int, dict[str, int]] = field(default_factory=dict)
    parts: dict[int, list[dict[str, int]]] = field(default_factory=dict)  # node to its chunks
    watts: int = 0  # its upper estimate on each node; 0: nothing is known
    elsewhere: int = 0  # nodes that the snapshot does not have
    together: bool = True  # the chunks on a node are one in the eyes of protections


@lru_cache(maxsize=4096)
def opens(cron: str, length_s: int, timezone: str, second: int) -> bool:
    """Whether an opening of a cron covers a second; on the wall clock, minute by minute."""
    zone = ZoneInfo(timezone)
    now = dt.datetime.fromtimestamp(second, zone).replace(tzinfo=None)
    minute = now.replace(second=0)
    back = -(-length_s // 60) + 1
    for ago in range(back + 1):
        begin = minute - dt.timedelta(minutes=ago)
        if croniter.match(cron, begin) and begin <= now < begin + dt.timedelta(seconds=length_s):
            return True
    return False


class Naive:
    """One site and one snapshot; `broken(plan)` tells what rows break at which second."""

    def __init__(
        self,
        snapshot: Snapshot,
        site: Site,
    ) -> None:
        self.snapshot, self.site, self.rules = snapshot, site, site.rules
        self.protect, self.cron_s = site.protect, site.cron_s
        self.resources = list(snapshot.resources)
        self.capacity = [
            dict(zip(self.resources, row, strict=True)) for row in snapshot.nodes.capacity.tolist()
        ]

    # ---------------------------------------------------------------- the world

    def running(self) -> list[Held]:
        found = []
        table = self.snapshot.running
        for at in range(len(table)):
            part = int(table.partition[at])
            taken = dict.fromkeys(self.resources, 0)
            nodes = {}
            for entry in range(int(table.indptr[at]), int(table.indptr[at + 1])):
                use = dict(zip(self.resources, table.use[entry].tolist(), strict=True))
                nodes[int(table.nodes[entry])] = use
                for name, amount in use.items():
                    taken[name] += amount
            for name, amount in zip(self.resources, table.use_elsewhere[at].tolist(), strict=True):
                taken[name] += amount
            taken |= dict(zip(self.snapshot.licences, table.licences[at].tolist(), strict=True))
            taken |= {"jobs": 1, "arrayjobs": int("_" in table.id[at])}
            who = {
                "user": table.user[at],
                "account": table.account[at],
                "partition": self.snapshot.partitions[part].name if part >= 0 else "",
            }
            end_s = max(int(table.end_s[at]), self.snapshot.now_s + 1)
            whole = bool(table.exclusive[at])
            held = Held(-1, self.snapshot.now_s, end_s, who, taken, taken, whole, nodes=nodes)
            known = table.measured_max_power_w[at] or table.learnt_max_power_w[at]
            held.watts = int(known or table.max_power_w[at])
            held.elsewhere = int(table.nodes_elsewhere[at])
            held.parts = {node: [use] for node, use in nodes.items()}
            found.append(held)
        return found

    def planned(self, plan: Plan) -> list[Held]:
        return [
            self._row(plan, row)
            for row in range(len(plan))
            if plan.start_s[row] not in (NEVER, UNPLANNED)
        ]

    def _row(self, plan: Plan, row: int) -> Held:
        snapshot, jobs, job = self.snapshot, self.snapshot.jobs, int(plan.job[row])
        part = snapshot.partitions[int(plan.partition[row])]
        limit_s = int(jobs.time_limit_s[job])
        limit_s = limit_s or part.default_time_s or part.max_time_s or UNLIMITED_S
        if jobs.deadline_s[job] or jobs.min_time_s[job]:  # the plan may cut it
            limit_s = min(limit_s, int(plan.end_s[row] - plan.start_s[row]))
        limit_s = int(jobs.kill_limit_s[job]) or limit_s
        whole = bool(jobs.exclusive[job]) or part.exclusive
        each = dict(zip(self.resources, jobs.per_node[job].tolist(), strict=True))
        task = dict(zip(self.resources, jobs.per_task[job].tolist(), strict=True))
        requested, has = dict.fromkeys(self.resources, 0), dict.fromkeys(self.resources, 0)
        nodes, parts = {}, {}
        chunks = jobs.chunks[job]
        packed = chunks is not None and (
            chunks.request.place.arrangement is Arrangement.PACK
            or bool(chunks.request.kinds[0].host)
        )
        several = chunks is not None and len(chunks.request.kinds) > 1
        free = (
            int(jobs.tasks[job]) > 0
            and not jobs.per_node[job].any()
            and max(int(jobs.min_nodes[job]), part.min_nodes) <= 1
            and min(int(jobs.max_nodes[job]), part.max_nodes or NEVER) >= int(jobs.tasks[job])
            and jobs.width_rule[job] == WidthRule.ANY
            and not jobs.required[job]
        )
        for entry in range(int(plan.indptr[row]), int(plan.indptr[row + 1])):
            node, tasks = int(plan.nodes[entry]), int(plan.tasks[entry])
            use = {name: each[name] + tasks * task[name] for name in self.resources}
            mine = [task] if free else [use]
            if chunks is not None:
                beside = dict(zip(self.resources, chunks.per_node, strict=True))
                wants = [dict(zip(self.resources, want, strict=True)) for want in chunks.wants]
                counts = plan.groups[entry].tolist() if several else [0]
                if several:
                    use = {
                        name: beside[name]
                        + sum(n * w[name] for n, w in zip(counts, wants, strict=False))
                        for name in self.resources
                    }
                    there = [kind for kind, n in enumerate(counts) if n for _ in range(n)]
                else:
                    there = [0]
                mine = [
                    {name: wants[kind][name] + beside[name] for name in self.resources}
                    for kind in there
                ]
                if packed:
                    mine = [
                        {
                            name: sum(
                                kind.count * (want[name] + beside[name])
                                for kind, want in zip(chunks.request.kinds, wants, strict=True)
                            )
                            for name in self.resources
                        }
                    ]
            nodes[node], parts[node] = use, mine
            for name in self.resources:
                requested[name] += use[name]
                has[name] += self.capacity[node][name]
        requested |= dict(zip(snapshot.licences, jobs.licences[job].tolist(), strict=True))
        requested |= {"jobs": 1, "arrayjobs": int(jobs.array_tasks[job] > 0)}
        taken = dict(requested)
        if whole:
            for name in ("cpus", "mem_mib"):
                taken[name] = max(requested[name], has[name])
        who = {"user": jobs.user[job], "account": jobs.account[job], "partition": part.name}
        return Held(
            row, int(plan.start_s[row]), int(plan.end_s[row]), who, requested, taken, whole,
            limit_s, nodes, parts, together=packed or not several,
            watts=int(jobs.learnt_max_power_w[job] or jobs.max_power_w[job]),
        )  # fmt: skip

    def available(self, resource: str, partition: str = "") -> int:
        if resource in ("jobs", "arrayjobs"):
            return 0
        if resource in self.snapshot.licences:
            return int(self.snapshot.licence_total[self.snapshot.licences.index(resource)])
        members = range(len(self.capacity))
        for part in self.snapshot.partitions:
            if part.name == partition:
                members = part.nodes.tolist()
        return sum(self.capacity[n][resource] for n in members if self.snapshot.nodes.usable[n])

    # ---------------------------------------------------------------- the rules

    def in_force(self, validity: Validity, second: int) -> bool:
        if not validity.start_s <= second < validity.end_s:
            return False
        if not validity.cron:
            return True
        soon = second < self.snapshot.now_s + self.cron_s
        return soon and opens(validity.cron, validity.length_s, self.rules.timezone, second)

    def limits_at(self, kind: str, name: str, resource: str, second: int) -> list[Limit]:
        of_kind = [limit for limit in self.rules.limits if limit.kind.value == kind]
        own = [limit for limit in of_kind if limit.name == name and name != "*"]
        own = own or [limit for limit in of_kind if limit.name == "*"]
        now = [limit for limit in own if self.in_force(limit.validity, second)]
        exact = [limit for limit in now if ALSO.get(limit.resource, limit.resource) == resource]
        if exact or resource in ("jobs", "arrayjobs"):
            return exact
        return [limit for limit in now if limit.resource == "*"]

    def lets_in(self, access: Access, held: Held) -> bool:
        for kind, names in (
            ("user", access.users), ("account", access.accounts), ("partition", access.partitions),
        ):  # fmt: skip
            if names is not None and held.who[kind] not in names:
                return False
        for bound in access.bounds:
            name = ALSO.get(bound.what, bound.what)
            if bound.what == TIME:
                if not bound.minimum <= held.limit_s <= bound.maximum:
                    return False
            elif (
                held.requested.get(name, 0) < bound.minimum
                or held.taken.get(name, 0) > bound.maximum
            ):
                return False
        return True

    def chunk_meets(self, bounds: tuple[Bound, ...], chunk: Mapping[str, int]) -> bool:
        return all(b.minimum <= chunk.get(ALSO.get(b.what, b.what), 0) <= b.maximum for b in bounds)

    def kept(self, pool: FreePool, node: int) -> bool:
        nodes, table = pool.nodes, self.snapshot.nodes
        named = not nodes.names or table.names[node] in nodes.names
        fits = not nodes.features or nodes.features in table.features[node]  # one feature
        having = ALSO.get(nodes.having, nodes.having)
        has = not having or self.capacity[node].get(having, 0) > 0
        return named and fits and has

    def broken(self, plan: Plan) -> list[tuple[int, str]]:
        """Seconds and rules that are broken then; empty: none."""
        rows = self.planned(plan)
        everybody = [*self.running(), *rows]
        last = max((held.end_s for held in rows), default=0)
        found = []
        for second in range(self.snapshot.now_s, last):
            there = [held for held in everybody if held.start_s <= second < held.end_s]
            if any(held.row >= 0 for held in there):
                found += [(second, text) for text in self._at(second, there)]
        return found

    def _at(self, second: int, there: list[Held]) -> list[str]:
        found = []
        for held in there:
            if held.row < 0:
                continue
            for resource, amount in held.taken.items():
                if amount:
                    found += self._limits(second, there, held, resource, amount)
                    found += self._pools(second, there, held, resource)
            for pool in self.rules.free_pools:
                if pool.nodes is None or not self.in_force(pool.validity, second):
                    continue
                if any(not a.chunk and self.lets_in(a, held) for a in pool.access):
                    continue
                conditions = [a.chunk for a in pool.access if a.chunk and self.lets_in(a, held)]
                for node, chunks in held.parts.items():
                    if self.kept(pool, node) and not all(
                        any(self.chunk_meets(one, chunk) for one in conditions) for chunk in chunks
                    ):
                        found.append(f"row {held.row}: pool {pool.name} keeps node {node}")
            found += self._protections(there, held)
        power = power_of(self.site)
        if power is not None:
            found += broken_power(power, self.snapshot, second, there)
        return found

    def _limits(self, second, there, held, resource, amount) -> list[str]:
        found = []
        for kind, name in held.who.items():
            for limit in self.limits_at(kind, name, resource, second):
                if limit.duration_s is not None and held.limit_s > limit.duration_s:
                    found.append(f"row {held.row}: {limit} duration")
                if limit.area is not None and amount * held.limit_s > limit.area:
                    found.append(f"row {held.row}: {limit} area")
                if limit.items is not None:
                    total = self.available(resource, name if kind == "partition" else "")
                    maximum = limit.items.of(total)
                    used = sum(one.taken[resource] for one in there if one.who[kind] == name)
                    if used > maximum:
                        found.append(f"row {held.row}: {limit} {used} > {maximum}")
        return found

    def _pools(self, second, there, held, resource) -> list[str]:
        found = []
        for pool in self.rules.free_pools:
            same = ALSO.get(pool.resource, pool.resource) == resource
            if pool.nodes is not None or not same or not self.in_force(pool.validity, second):
                continue

            def inside(one, pool=pool):
                return any(self.lets_in(access, one) for access in pool.access)

            if inside(held):
                continue
            total = self.available(resource)
            left = max(total - pool.keep.of(total, round_up=True), 0)
            used = sum(one.taken[resource] for one in there if one.row < 0 or not inside(one))
            if used > left:
                found.append(f"row {held.row}: pool {pool.name} {used} > {left}")
        return found

    def _protections(self, there, held) -> list[str]:
        found = []
        for protected, kept in self.protect.items():
            for node in held.nodes:
                if not self.capacity[node][protected]:
                    continue
                keeps = {
                    name: min(amount, self.capacity[node][name])
                    for name, amount in kept.items()
                    if name != protected and min(amount, self.capacity[node][name])
                }
                if keeps and held.whole and not held.nodes[node][protected]:
                    found.append(f"row {held.row}: node {node} keeps some for {protected}")
                for name, keep in keeps.items():
                    if not self.outside(held, node, protected)[name]:
                        continue
                    used = sum(
                        self.outside(one, node, protected)[name]
                        for one in there
                        if node in one.nodes
                    )
                    if used > self.capacity[node][name] - keep:
                        found.append(f"row {held.row}: node {node} keeps {name} for {protected}")
        return found

    def outside(self, held: Held, node: int, protected: str) -> dict[str, int]:
        """What is held on a node by chunks that do not want the protected resource."""
        none = dict.fromkeys(self.resources, 0)
        if held.together:
            return none if held.nodes[node][protected] else held.nodes[node]
        for chunk in held.parts[node]:
            if not chunk[protected]:
                none = {name: none[name] + chunk[name] for name in self.resources}
        return none
