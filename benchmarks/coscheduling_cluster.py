#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment on co-scheduling on a real dockerized cluster, in real cgroups.

usage: benchmarks/coscheduling_cluster.py [--policies NAME,...] [--repeats N] [--workflows N]
                                          [--nodes N] [--seed N] [--json FILE [--add]]
       benchmarks/coscheduling_cluster.py --show FILE [--table policies|paper|workflows|cpu|harm]

Each node is a container on a core of its own, which outweighs other processes of the machine. The
workflows of `examples/workloads` are submitted by stages; every job computes for real and checks
its result. In each repeat all policies run the same set, one after the other, on one cluster, so
what was learnt stays; the order is turned by one place each time. `easy` is the exclusive baseline.

It needs cgroup v1, and no other cluster with --cgroups. It raises the weight of Docker's cgroup
while it runs, and puts it back.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import results_file
from about import about
from cluster_bench.stand import ROOT, BenchError, Stand
from coscheduling_bench import table
from coscheduling_bench.nodes import Nodes, outweighing
from coscheduling_bench.run import prepare, run, set_policy
from coscheduling_bench.workload import workflows
from progress import say

POLICIES: Mapping[str, Mapping[str, object]] = {
    "easy": {"preset": "easy"},
    "static-half": {"preset": "static-half"},
    "asax": {"preset": "asax", "share": {"name": "asax", "ask_again_s": 10}},
    "pairs": {"preset": "pairs", "share": {"name": "pairs", "watch_s": 1, "calm_s": 10}},
}
"""Their own times are compressed like the jobs'."""
_BOUND_S = 1800.0
_REQUEUE_S = 10
"""How long a requeued job waits (`cred_expire`), s: two minutes, compressed like the jobs."""


def options(nodes: int, config: Path) -> list[str]:
    """The options of `scripts/cluster up`."""
    return [
        "--containers", str(nodes), "--cpus", "1", "--agents", "--cgroups",
        "--service-config", str(config),
        "--set", "OverTimeLimit=60", "--set", f"AuthInfo=cred_expire={_REQUEUE_S}",
        "--set", f"PartitionName=share Nodes=n[1-{nodes}] OverSubscribe=YES:2 "
                 "MaxTime=INFINITE State=UP",
    ]  # fmt: skip


def measure(given: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    """All runs, each written to the file when it has ended."""
    first = 1 + max((one["repeat"] for one in found), default=0)
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as folder:
        config = Path(folder, "bridge.yaml")
        text = (ROOT / "slurm_conf" / "bridge.yaml").read_text()
        planning = {"coscheduling": [{"partition": "share", "max_slowdown": table.BOUND}]}
        config.write_text(f"{text}\nplanning: {json.dumps(planning)}\n")
        more = options(given.nodes, config)
        with (
            outweighing(),
            Stand(given.name, "bridge", given.nodes, say, options=more) as stand,
            Nodes(given.name, given.nodes) as nodes,
        ):
            prepare(stand)
            for repeat in range(first, first + given.repeats):
                turn = repeat % len(given.policies)
                for policy in given.policies[turn:] + given.policies[:turn]:
                    found.append(one_run(given, stand, nodes, policy, repeat))
                    say("  " + (found[-1].get("error") or table.in_short(found[-1])))
                    if given.json:
                        results_file.write(given.json, {**about(), "runs": found})


def one_run(
    given: argparse.Namespace, stand: Stand, nodes: Nodes, policy: str, repeat: int
) -> dict[str, Any]:
    """One set under one policy; with `error` if it failed."""
    say(f"repeat {repeat}, {policy}")
    head = {
        "policy": policy, "repeat": repeat, "seed": given.seed + repeat, "nodes": given.nodes,
        "workflows": given.workflows,
    }  # fmt: skip
    flows = workflows(given.seed + repeat, given.workflows, given.nodes)
    try:
        set_policy(stand, POLICIES[policy])
        result = run(stand, nodes, flows, _BOUND_S)
    except (BenchError, ValueError, TimeoutError) as error:
        return {**head, **about(), "error": str(error)}
    return {**head, **about(), **result}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        epilog="A set of 15 workflows takes about ten minutes on two nodes.",
    )
    add = parser.add_argument
    add("--policies", default=",".join(POLICIES), help="[%(default)s]")
    add("--repeats", type=int, default=3, help="of the set, under each policy [%(default)s]")
    add("--workflows", type=int, default=15, help="only the first ones of a set [%(default)s]")
    add("--nodes", type=int, default=2, help="each on a core of its own [%(default)s]")
    add("--seed", type=int, default=0, help="of the order of submission [%(default)s]")
    add("--name", default="sharebench", help="of the cluster that is made [%(default)s]")
    add("--json", type=Path, help="write all figures to this file")
    add("--add", action="store_true", help="keep the runs in FILE")
    add("--show", type=Path, help="only print a table of this file")
    add("--table", choices=tuple(table.TABLES), default="policies")
    given = parser.parse_args()
    given.policies = given.policies.split(",")
    if given.add and not given.json:
        parser.error("--add needs --json FILE")
    if unknown := set(given.policies) - set(POLICIES):
        parser.error(f"'{min(unknown)}' is none of {', '.join(POLICIES)}")
    if not 1 <= given.workflows <= 15:
        parser.error("--workflows: 1 to 15")
    return given


def main() -> int:
    given = arguments()
    if given.show:
        print("\n".join(table.lines(json.loads(given.show.read_text()), given.table)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found: list[dict[str, Any]] = []
    if given.add and given.json.exists():
        found = json.loads(given.json.read_text())["runs"]
    measure(given, found)
    for name in table.TABLES:
        print("\n".join([*table.lines({"runs": found}, name), ""]))
    return int(any("error" in one or one["right"] != one["count"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
