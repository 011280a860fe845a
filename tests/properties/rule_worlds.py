# SPDX-License-Identifier: Apache-2.0
"""Random small worlds and random rules that bind them, for properties of site rules."""

from dataclasses import replace

from hypothesis import strategies as st

from bridge.extensions.power.rules import NO_UPPER_W, Corridor, NodePower, PowerRules, with_power
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
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_node, a_partition, a_running_job, a_snapshot

USERS, ACCOUNTS, PARTITIONS = ["ann", "bob"], ["x", "y"], ["p", "q"]
RESOURCES = ["cpus", "mem", "gpu", "lic", "jobs", "arrayjobs"]
CRON_S = 240
LONGEST_S = 45

validities = st.one_of(
    st.just(Validity()),
    st.tuples(st.integers(0, 90), st.integers(1, 60)).map(lambda p: Validity(p[0], sum(p))),
    st.integers(0, 60).map(lambda start: Validity(start, NEVER)),
    st.builds(
        Validity,
        start_s=st.sampled_from([0, 0, 30]),
        end_s=st.sampled_from([NEVER, NEVER, 100]),
        cron=st.sampled_from(["* * * * *", "*/2 * * * *", "1,3 * * * *", "0 0 * * *"]),
        length_s=st.sampled_from([15, 40, 75]),
    ),
)
percents = st.sampled_from([0.0, 25.0, 33.3, 50.0, 80.0])


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    kind = draw(st.sampled_from(ConsumerKind))
    names = {"user": USERS, "account": ACCOUNTS, "partition": PARTITIONS}[kind.value]
    resource = draw(st.sampled_from(["cpus", "cpus", "cpus", EACH, EACH, *RESOURCES]))
    minimum = None if resource == EACH else draw(st.none() | st.integers(0, 16))
    if resource == "mem" and minimum is not None:
        minimum *= 256
    percent = None if resource in ("jobs", "arrayjobs") else draw(st.none() | percents)
    return Limit(
        kind,
        draw(st.sampled_from([names[0], EACH, EACH])),
        resource,
        None if minimum is None and percent is None else Items(minimum, percent),
        draw(st.sampled_from([None, None, None, 15, 35])),
        draw(st.sampled_from([None, None, None, 60, 240])),
        draw(validities),
    )


def bounds(names: list[str], maximum: int) -> st.SearchStrategy[tuple[Bound, ...]]:
    def one(name: str) -> st.SearchStrategy[Bound]:
        scale = 256 if name == "mem" else 5 if name == TIME else 1
        minimum = st.integers(0, maximum).map(lambda n: n * scale)
        return st.one_of(
            st.builds(Bound, st.just(name), minimum),
            st.builds(Bound, st.just(name), st.just(0), minimum),
        )

    return st.lists(st.sampled_from(names).flatmap(one), min_size=1, max_size=2).map(tuple)


def accesses(*, chunk: bool) -> st.SearchStrategy[Access]:
    return st.builds(
        Access,
        users=st.none() | st.just(frozenset(USERS[:1])),
        accounts=st.sampled_from([None, None, frozenset(ACCOUNTS[:1])]),
        partitions=st.sampled_from([None, None, frozenset(PARTITIONS[:1])]),
        bounds=st.just(()) | bounds(["cpus", "cpus", "gpu", "mem", TIME], 8),
        chunk=(st.just(()) | bounds(["cpus", "cpus", "gpu", "mem"], 4)) if chunk else st.just(()),
    )


pools_of_resources = st.builds(
    FreePool,
    name=st.just("items"),
    resource=st.sampled_from(["cpus", "cpus", "gpu", "mem", "lic"]),
    keep=st.builds(Items, st.none() | st.integers(0, 8), percents),
    access=st.lists(accesses(chunk=False), max_size=2).map(tuple),
    validity=validities,
)
pools_of_nodes = st.builds(
    FreePool,
    name=st.just("nodes"),
    access=st.lists(accesses(chunk=True), max_size=2).map(tuple),
    validity=validities,
    nodes=st.one_of(
        st.just(NodeSet(having="gpu")),
        st.just(NodeSet(names=("n1", "n2"))),
        st.just(NodeSet(features="fast")),
    ),
)


@st.composite
def corridors(draw: st.DrawFn) -> Corridor:
    """Up to three steps; most bind the small worlds here."""
    starts = sorted(draw(st.sets(st.integers(1, 90), max_size=2)))
    bounds = st.sampled_from([NO_UPPER_W, 200, 450, 600, 800, 1000, 1300])
    upper = [draw(bounds) for _ in range(len(starts) + 1)]
    return Corridor((0, *starts), (0,) * len(upper), tuple(upper))


powers = st.builds(
    PowerRules,
    corridor=corridors(),
    node_types=st.sampled_from(
        [
            (NodePower("rest", NodeSet(), 71, 250),),
            (
                NodePower("fast", NodeSet(features="fast"), 120, 600),
                NodePower("r", NodeSet(), 9, 99),
            ),
            (NodePower("first", NodeSet(names=("n1",)), 0, 300),),
        ]
    ),
    base_w=st.sampled_from([0, 100]),
)
watts = st.sampled_from([0, 0, 0, 80, 170, 250, 700])

rules = st.builds(
    Rules,
    limits=st.lists(limits(), max_size=4).map(tuple),
    free_pools=st.tuples(
        st.lists(pools_of_resources, max_size=1), st.lists(pools_of_nodes, max_size=1)
    ).map(lambda pair: (*pair[0], *pair[1])),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
)
protections = st.sampled_from([{}, {}, {"gpu": {"cpus": 1}}, {"gpu": {"cpus": 2, "mem_mib": 512}}])
power_sites = powers.map(lambda power: with_power(Site(cron_s=CRON_S), power))
sites = st.builds(
    lambda given, protect, power: with_power(Site(given, protect, CRON_S), power),
    rules, protections, st.none() | powers,
)  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn, n_nodes: int) -> a_job:
    minimum = draw(st.integers(1, n_nodes))
    maximum = draw(st.integers(minimum, n_nodes))
    tasks = draw(st.sampled_from([0, 0, 0, 1, 3, 6]))
    array = draw(st.sampled_from([0, 0, 0, 0, 3]))
    job = a_job(
        nodes=1 if tasks else minimum,
        max_nodes=maximum,
        limit_s=draw(st.sampled_from([10, 20, 30, LONGEST_S])),
        priority=draw(st.integers(1, 3)),
        partitions=draw(st.sampled_from([(0,), (1,), (0, 1)])),
        shared=draw(st.sampled_from([True, True, False])),
        cpus=draw(st.sampled_from([0, 1, 2] if tasks else [1, 2, 4])),
        mem_mib=draw(st.sampled_from([0, 0, 256, 1024])),
        gpus=draw(st.sampled_from([0, 0, 0, 1])),
        tasks=tasks,
        cpus_per_task=draw(st.sampled_from([1, 2])),
        licences=draw(st.sampled_from([(0,), (0,), (1,), (2,)])),
        array_tasks=array,
        array_startable=array,
        user=draw(st.sampled_from(USERS)),
        account=draw(st.sampled_from(ACCOUNTS)),
        deadline_s=draw(st.sampled_from([0, 0, 0, 0, 60, 120])),
        min_s=draw(st.sampled_from([0, 0, 10])),
        max_power_w=draw(watts),
        learnt_max_power_w=draw(watts),
    )
    if draw(st.sampled_from([False, False, False, True])):
        wants = st.sampled_from(["1", "2", "2:mem=512mb", "1:ngpus=1"])
        groups = draw(st.lists(st.tuples(st.integers(1, 2), wants), min_size=1, max_size=2))
        place = draw(st.sampled_from(["free", "pack", "free:excl", "scatter"]))
        if place == "scatter" and len({"ngpus" in what for _, what in groups}) > 1:
            place = "pack"  # Slurm has no words for the other
        job.chunks = "+".join(f"{count}:ncpus={what}" for count, what in groups)
        job.chunks += f",place={place}"
        job.tasks = 0
    return job


@st.composite
def worlds(draw: st.DrawFn, most_jobs: int = 6):
    """Nodes of two sizes, two partitions, what runs, and jobs of all kinds."""
    n_nodes = draw(st.integers(2, 5))
    nodes = [
        a_node(
            cpus=draw(st.sampled_from([4, 4, 8])),
            mem_mib=draw(st.sampled_from([1024, 2048])),
            gpus=draw(st.sampled_from([0, 0, 2])),
            features=draw(st.sampled_from([(), ("fast",)])),
            usable=draw(st.sampled_from([True] * 7 + [False])),
        )
        for _ in range(n_nodes)
    ]
    held = []
    for node in range(n_nodes):
        if draw(st.sampled_from([False, False, True])):
            held.append(
                a_running_job(
                    (node,),
                    end_s=draw(st.integers(-3, 40)),
                    shared=draw(st.booleans()),
                    cpus=draw(st.integers(1, 3)),
                    gpus=min(nodes[node].gpus, draw(st.integers(0, 1))),
                    cpus_elsewhere=draw(st.sampled_from([0, 0, 2])),
                    nodes_elsewhere=draw(st.sampled_from([0, 0, 1, 2])),
                    licences=(draw(st.integers(0, 1)),),
                    user=draw(st.sampled_from(USERS)),
                    account=draw(st.sampled_from(ACCOUNTS)),
                    max_power_w=draw(watts),
                    learnt_max_power_w=draw(watts),
                    measured_max_power_w=draw(watts),
                    id=f"{900 + node}{draw(st.sampled_from(['', '_1']))}",
                )
            )
    everywhere = range(n_nodes)
    drained = draw(st.booleans())
    world = a_snapshot(
        nodes=nodes,
        jobs=draw(st.lists(jobs(n_nodes), min_size=1, max_size=most_jobs)),
        running=held,
        partitions=(
            a_partition("p", everywhere, exclusive=False),
            a_partition("q", everywhere[: max(n_nodes - 1, 1)]),
        ),
        licences=[("lic", 4)],
    )()
    if drained:  # nodes that are not usable, but on
        states = tuple(words.replace("DOWN", "UP+DRAIN") for words in world.nodes.state)
        world = replace(world, nodes=replace(world.nodes, state=states))
    return world
