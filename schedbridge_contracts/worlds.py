# SPDX-License-Identifier: Apache-2.0
"""Random small worlds with everything mixed; a world is named by its seed."""

import random

from bridge.model.job import Hold, WidthRule
from bridge.model.snapshot import Snapshot
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)


def random_world(
    seed: int, *, arrays: bool = True, hide: int | None = None, chunks: bool = False
) -> Snapshot:
    """A few nodes and jobs of all kinds.

    `hide` holds one job back and `chunks` lets some ask in chunks; neither changes anything else.
    """
    dice = random.Random(seed)
    n = dice.randint(2, 9)
    nodes = [
        a_node(
            cpus=dice.choice((2, 4, 8)),
            mem_mib=dice.choice((1000, 4000)),
            gpus=dice.choice((0, 0, 2)),
            features=tuple(f for f in ("x", "y") if dice.random() < 0.5),
            usable=dice.random() < 0.9,
            weight=dice.choice((1, 1, 2)),
        )
        for _ in range(n)
    ]
    some = lambda: sorted(dice.sample(range(n), dice.randint(1, n)))  # noqa: E731
    partitions = [
        a_partition("all", range(n)),
        a_partition("some", some(), max_time_s=dice.choice((0, 150)), priority_tier=2),
        a_partition("few", some(), up=dice.random() < 0.8, default_time_s=60),
    ]
    reservations = [
        a_reservation(some(), start, start + dice.randint(20, 200), name)
        for name, start in (("r1", dice.randint(-50, 100)), ("r2", dice.randint(100, 300)))
        if dice.random() < 0.5
    ]
    free = list(range(n))
    dice.shuffle(free)
    running = []
    while free and dice.random() < 0.6:
        width = dice.randint(1, len(free))
        taken, free = sorted(free[:width]), free[width:]
        running.append(
            a_running_job(
                tuple(taken),
                end_s=dice.randint(-5, 150),
                shared=dice.random() < 0.5,
                licences=(dice.randint(0, 1),),
            )
        )
    jobs = []
    for _ in range(dice.randint(1, 14)):
        low = dice.randint(1, n)
        tasks = dice.choice((0, 0, dice.randint(1, 12)))
        array = dice.randint(1, 6) if arrays and dice.random() < 0.15 else 0
        hold = dice.choice([Hold.NONE] * 9 + [Hold.HELD, Hold.BEGIN_TIME, Hold.DEPENDENCY])
        jobs.append(
            a_job(
                nodes=1 if tasks else low,
                max_nodes=dice.randint(low, n) if dice.random() < 0.4 or tasks else low,
                limit_s=dice.choice((0, 10, 60, 100, 100, 150)),
                submit_s=-dice.randint(0, 50),
                priority=dice.randint(1, 5),
                hold=hold,
                begin_s=dice.randint(1, 200) if hold is Hold.BEGIN_TIME else 0,
                partitions=tuple(dice.sample((0, 1, 2), dice.randint(1, 3))),
                shared=dice.random() < 0.6,
                cpus=dice.choice((0, 1, 2)),
                mem_mib=dice.choice((0, 500, 2000)),
                gpus=dice.choice((0, 0, 0, 1)),
                tasks=tasks,
                cpus_per_task=dice.choice((1, 2)),
                max_tasks_per_node=dice.choice((0, 0, 2)) if tasks else 0,
                width_rule=dice.choice([WidthRule.ANY] * 5 + list(WidthRule)),
                features=dice.choice(("", "", "", "x", "x|y", "[x|y]", "x&")),
                required=(dice.randrange(n),) if dice.random() < 0.1 else (),
                excluded=(dice.randrange(n),) if dice.random() < 0.1 else (),
                licences=(dice.choice((0, 0, 1, 2)),),
                reservation=(
                    dice.randrange(len(reservations))
                    if reservations and dice.random() < 0.2
                    else -1
                ),
                array_tasks=array,
                array_startable=dice.randint(0, array) if array else 0,
            )
        )
    if chunks:
        _ask_in_chunks(random.Random(f"chunks {seed}"), jobs, nodes)
    if hide is not None:
        jobs[hide].hold = Hold.HELD
    return a_snapshot(
        nodes=nodes,
        jobs=jobs,
        running=running,
        partitions=partitions,
        reservations=reservations,
        licences=[("matlab", 2)],
    )()


def _ask_in_chunks(dice: random.Random, jobs: list[a_job], nodes: list[a_node]) -> None:
    """Rewrites about half of the jobs."""
    there = sorted({feature for node in nodes for feature in node.features})
    for job in jobs:
        if dice.random() < 0.5:
            continue
        groups = []
        for _ in range(dice.randint(1, 3)):
            words = [str(dice.randint(1, 3)), f"ncpus={dice.choice((1, 1, 2, 4))}"]
            if dice.random() < 0.4 and any(node.gpus for node in nodes):
                words.append("ngpus=1")
            if there and dice.random() < 0.3:
                words.append(f"{dice.choice(there)}=true")
            groups.append(":".join(words))
        place = dice.choice(("free", "free", "pack", "scatter", "scatter:excl", "free:excl"))
        if place.startswith("scatter") and len({"ngpus" in group for group in groups}) > 1:
            place = place.replace("scatter", "pack")  # Slurm has no words for the other
        job.chunks = "+".join(groups) + f",place={place}"
        job.features, job.required, job.width_rule = "", (), WidthRule.ANY
        job.max_tasks_per_node = 0
