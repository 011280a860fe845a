# SPDX-License-Identifier: Apache-2.0
"""Capacity constraints accept exactly the plans that limits and FreePools do, second by second."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.rules.limits import (
    EACH,
    TIME,
    Access,
    Bound,
    ConsumerKind,
    FreePool,
    Items,
    Limit,
    Rules,
    Validity,
)
from bridge.model.rules.site import Site
from bridge.planning.site_rules.lowered_rules import Extent, Sums, lower
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_node, a_partition, a_running_job, a_snapshot

CPUS, GPUS, LICENCES = 20, 4, 3
END = 30
RESOURCES = ["cpus", "gpu", "lic", "jobs", "arrayjobs"]
AVAILABLE = {"cpus": CPUS, "gpu": GPUS, "lic": LICENCES}
USERS, ACCOUNTS, PARTITIONS = ["ann", "bob"], ["x", "y"], ["p", "q"]

validities = st.one_of(
    st.just(Validity()),
    st.tuples(st.integers(0, END), st.integers(1, END)).map(
        lambda pair: Validity(pair[0], pair[0] + pair[1])
    ),
    st.integers(0, END).map(lambda start: Validity(start, NEVER)),
)
percents = st.sampled_from([0.0, 25.0, 33.3, 50.0, 100.0])


@st.composite
def limits(draw: st.DrawFn, kinds: tuple[ConsumerKind, ...]) -> Limit:
    kind = draw(st.sampled_from(kinds))
    names = {"user": USERS, "account": ACCOUNTS, "partition": PARTITIONS}[kind.value]
    resource = draw(st.sampled_from(["cpus", "cpus", EACH, EACH, *RESOURCES]))
    minimum = None if resource == EACH else draw(st.none() | st.integers(0, 12))
    percent = None if resource in ("jobs", "arrayjobs") else draw(st.none() | percents)
    items = None if minimum is None and percent is None else Items(minimum, percent)
    return Limit(
        kind,
        draw(st.sampled_from([names[0], EACH])),
        resource,
        items,
        draw(st.sampled_from([None, None, 3, 6, 12])),
        draw(st.sampled_from([None, None, 10, 60])),
        draw(validities),
    )


# Mostly of one kind: rules meet each other more often.
limit_lists = st.one_of(
    st.sampled_from(ConsumerKind).flatmap(lambda kind: st.lists(limits((kind,)), max_size=5)),
    st.lists(limits(tuple(ConsumerKind)), max_size=5),
)
accesses = st.builds(
    Access,
    users=st.none() | st.sets(st.sampled_from([*USERS, "cid"]), min_size=1).map(frozenset),
    accounts=st.none() | st.sets(st.sampled_from(ACCOUNTS), min_size=1).map(frozenset),
    partitions=st.none() | st.sets(st.sampled_from(PARTITIONS), min_size=1).map(frozenset),
    bounds=st.lists(
        st.builds(
            Bound,
            st.sampled_from(["cpus", "gpu", TIME]),
            st.integers(0, 8),
            st.sampled_from([NEVER, *range(9)]),
        ),
        max_size=2,
    ).map(tuple),
)
pools = st.builds(
    FreePool,
    name=st.just("pool"),
    resource=st.sampled_from(["cpus", "gpu", "lic"]),
    keep=st.builds(Items, st.none() | st.integers(0, 12), percents),
    access=st.lists(accesses, max_size=2).map(tuple),
    validity=validities,
)
jobs = st.builds(
    a_job,
    nodes=st.integers(1, 2),
    limit_s=st.integers(1, 14),
    partitions=st.sampled_from([(0,), (1,)]),
    shared=st.just(True),
    cpus=st.integers(1, 5),
    gpus=st.integers(0, 2),
    licences=st.sampled_from([(0,), (1,), (2,)]),
    array_tasks=st.sampled_from([0, 0, 3]),
    user=st.sampled_from(USERS),
    account=st.sampled_from(ACCOUNTS),
)
running = st.builds(
    a_running_job,
    end_s=st.integers(-3, 20),
    shared=st.just(True),
    cpus=st.integers(1, 4),
    gpus=st.integers(0, 1),
    licences=st.sampled_from([(0,), (1,)]),
    user=st.sampled_from(USERS),
    account=st.sampled_from(ACCOUNTS),
    id=st.sampled_from(["7", "8_1"]),
)


def uses(job: a_job | a_running_job) -> dict[str, int]:
    width = job.nodes if isinstance(job, a_job) else len(job.nodes)
    array = job.array_tasks > 0 if isinstance(job, a_job) else "_" in job.id
    return {
        "cpus": width * job.cpus, "gpu": width * job.gpus, "lic": job.licences[0],
        "jobs": 1, "arrayjobs": int(array),
    }  # fmt: skip


def consumers(job: a_job | a_running_job) -> dict[ConsumerKind, str]:
    part = PARTITIONS[job.partitions[0]] if isinstance(job, a_job) else PARTITIONS[0]
    return {
        ConsumerKind.USER: job.user, ConsumerKind.ACCOUNT: job.account,
        ConsumerKind.PARTITION: part,
    }  # fmt: skip


class Seconds:
    """The rules as they are written, second by second."""

    def __init__(self, rules: Rules, held: list) -> None:
        self.rules = rules
        self.placed = [(job, 0, max(job.end_s, 1)) for job in held]

    def effective(self, kind: ConsumerKind, name: str, resource: str, t: int) -> list[Limit]:
        of_kind = [limit for limit in self.rules.limits if limit.kind is kind]
        own = [limit for limit in of_kind if limit.name == name]
        own = own or [limit for limit in of_kind if limit.name == EACH]
        now = [v for v in own if v.validity.start_s <= t < v.validity.end_s]
        exact = [limit for limit in now if limit.resource == resource]
        if exact or resource in ("jobs", "arrayjobs"):
            return exact
        return [limit for limit in now if limit.resource == EACH]

    def sum_at(self, t: int, resource: str, kind=None, name: str = "") -> int:
        return sum(
            uses(job)[resource]
            for job, start, end in self.placed
            if start <= t < end and (kind is None or consumers(job)[kind] == name)
        )

    def lets_in(self, pool: FreePool, job: a_job) -> bool:
        who = consumers(job)
        requested = {**uses(job), TIME: job.limit_s}
        return any(
            (access.users is None or who[ConsumerKind.USER] in access.users)
            and (access.accounts is None or who[ConsumerKind.ACCOUNT] in access.accounts)
            and (access.partitions is None or who[ConsumerKind.PARTITION] in access.partitions)
            and all(
                bound.minimum <= requested[bound.what] <= bound.maximum for bound in access.bounds
            )
            for access in pool.access
        )

    def admits(self, job: a_job, start: int) -> bool:
        return all(self.at(job, t) for t in range(start, start + job.limit_s))

    def at(self, job: a_job, t: int) -> bool:
        for resource, amount in uses(job).items():
            if not amount:
                continue
            for kind, name in consumers(job).items():
                # The partitions hold one half of the nodes each.
                half = 2 if kind is ConsumerKind.PARTITION and resource != "lic" else 1
                for limit in self.effective(kind, name, resource, t):
                    if limit.duration_s is not None and job.limit_s > limit.duration_s:
                        return False
                    if limit.area is not None and amount * job.limit_s > limit.area:
                        return False
                    if limit.items is not None:
                        total = AVAILABLE.get(resource, 0) // half
                        maximum = limit.items.of(total)
                        if self.sum_at(t, resource, kind, name) + amount > maximum:
                            return False
            for pool in self.rules.free_pools:
                if pool.resource != resource or self.lets_in(pool, job):
                    continue
                if pool.validity.start_s <= t < pool.validity.end_s:
                    total = AVAILABLE[resource]
                    left = max(total - pool.keep.of(total, round_up=True), 0)
                    if self.sum_at(t, resource) + amount > left:
                        return False
        return True


def world(waiting: list, held: list):
    return a_snapshot(
        nodes=[a_node(cpus=CPUS // 4, gpus=GPUS // 4) for _ in range(4)],
        jobs=waiting,
        running=held,
        partitions=(a_partition("p", [0, 1]), a_partition("q", [2, 3])),
        licences=[("lic", LICENCES)],
    )()


def lowered_terms(rules: Rules, snapshot):
    lowered = lower(Site(rules, cron_s=10 * END), snapshot)
    table = snapshot.jobs
    rows = np.arange(len(table))
    where = np.array([parts[0] for parts in table.partitions], dtype=np.int64)
    return lowered, lowered.terms(rows, where, table.time_limit_s, Extent(table.min_nodes))


@settings(max_examples=400, deadline=None)
@given(
    limit_lists,
    st.lists(pools, max_size=2),
    st.lists(running, max_size=2),
    st.lists(st.tuples(jobs, st.integers(0, END)), min_size=1, max_size=6),
)
def test_a_plan_is_accepted_by_the_constraints_if_and_only_if_by_the_rules(
    given_limits, given_pools, held, placed
):
    """Slow: the rules are read second by second."""
    rules = Rules(tuple(given_limits), tuple(given_pools))
    snapshot = world([job for job, _ in placed], held)
    lowered, terms = lowered_terms(rules, snapshot)
    sums, seconds = Sums(lowered), Seconds(rules, held)
    for index, (job, start) in enumerate(placed):
        end = start + job.limit_s
        broken = sums.broken(start, end, terms, index)
        assert (broken is None) == seconds.admits(job, start), (job, start, broken)
        if broken is None:
            sums.put(start, end, terms, index)
            seconds.placed.append((job, start, end))


@settings(max_examples=300, deadline=None)
@given(limit_lists, st.lists(pools, max_size=2), jobs)
def test_a_job_is_told_never_if_and_only_if_no_start_will_do(given_limits, given_pools, job):
    rules = Rules(tuple(given_limits), tuple(given_pools))
    _, terms = lowered_terms(rules, world([job], []))
    starts = range(3 * END)  # everything that changes has changed by 2 * END
    ever = any(Seconds(rules, []).admits(job, start) for start in starts)
    if terms.reasons[0] is not None:
        assert not ever
        assert not terms.reasons[0].can_ever_run
    elif not ever:  # each constraint opens at some time, but never all of them for long enough
        assert len(set(terms.constraint.tolist())) > 1 or any(
            v.validity.start_s > 0 for v in (*given_limits, *given_pools)
        )
