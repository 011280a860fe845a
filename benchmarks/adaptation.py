#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of changes of width of a running MPI job: from 1 node up and back, one at a time.

usage: benchmarks/adaptation.py [--nodes N] [--runs N] [--engines join,relaunch] [--json FILE]
       benchmarks/adaptation.py --show FILE     only prints the table of this file
       benchmarks/adaptation.py --plot FILE     only draws this file, as .svg beside it

A real dockerized cluster with a slurmd and an agent in each node's container. One job grows and
shrinks by one node at a time on an administrator's orders (as by `schedbridge elastic`). `pi` has
two shared numbers and no data, `heat` redistributes its plate. Engine `join` is measured with the
MPICH of the Python package index, `relaunch` with Debian's Open MPI. Times of the steps are those
of the logs of service, slurmctld and `schedbridge run`. Progress goes to stderr. A run that fails
is recorded with its error; status 1 then.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

import results_file
from about import about
from cluster_bench.meters import load_between
from cluster_bench.stand import ROOT, BenchError, Stand
from elastic_bench import adaptation_table
from elastic_bench.programs import WIRES, compile_examples, exports
from elastic_bench.steps import changes, resizes, stages
from progress import say

ENGINES = {"join": "wheel", "relaunch": "ompi"}
PAUSE_US = 200_000
"""A step of the programs; they probe after each, so a change waits half a step on average."""
PROGRAMS = {
    "no": f"elastic/{{mpi}}/pi 1000000 100 {PAUSE_US}",
    "yes": f"elastic/{{mpi}}/heat {{rows}} 1024 1000000 1 {PAUSE_US}",
}
"""With and without redistribution."""
WAITS = {"add_s": 120, "grace_s": 60, "vacate_s": 60, "rest_s": 1}
SCRIPT = """#!/bin/bash
{exports}exec schedbridge run --mpi {wire} --tasks-per-node 1 -- {program}
"""
DRIVER = """
import json, sys, time
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import operator_pb2 as pb

job, patience_s = sys.argv[1], float(sys.argv[2])
with OperatorClient("unix:/run/schedbridge-operator/operator.sock") as service:
    def look():
        return service.elastic(job).jobs[0]
    def settled(width):
        seen = look()
        return seen.node_count == width and seen.state == "running" and seen.engine
    until_s = time.time() + 120
    while not settled(1):
        if time.time() > until_s: sys.exit("no launcher has attached")
        time.sleep(0.1)
    service.change_width(pb.ChangeWidthRequest(
        job_id=job, keeping=pb.ChangeWidthRequest.KEEPING_HOLD))
    for width in map(int, sys.argv[3:]):
        time.sleep(0.5)
        asked_s, until_s = time.time(), time.time() + patience_s
        service.change_width(pb.ChangeWidthRequest(job_id=job, width=width))
        again_s = asked_s + 10
        while not settled(width):
            if time.time() > until_s: sys.exit(f"not at {width} nodes in time: {look()}")
            if time.time() > again_s and look().state == "running":
                again_s = time.time() + 10
                service.change_width(pb.ChangeWidthRequest(job_id=job, width=width))
            time.sleep(0.05)
        print(json.dumps({"width": width, "asked_s": asked_s, "seen_s": time.time()}), flush=True)
"""


def run(stand: Stand, mpi: str, moves: str, given: argparse.Namespace) -> dict[str, object]:
    """One job from 1 node to all and back."""
    program = PROGRAMS[moves].format(mpi=mpi, rows=given.data_mib * 128)
    script = SCRIPT.format(exports=exports(), wire=WIRES[mpi], program=program)
    bounds = f"--malleable=1-{given.nodes}"
    job = stand.shell(
        "sbatch", "--parsable", "-N1", "--exclusive", bounds, "--ntasks-per-node=1", "-t", "600",
        "-o", "elastic/%j.out", stdin=script,
    ).strip()  # fmt: skip
    meters = stand.meters()
    before = meters.read()
    widths = [*range(2, given.nodes + 1), *range(given.nodes - 1, 0, -1)]
    try:
        seen = stand.shell(
            "python3", "-c", DRIVER, job, str(given.patience_s), *map(str, widths), user="root",
            timeout_s=60 + given.patience_s * len(widths),
        )  # fmt: skip
        load = load_between(before, meters.read())
        output = stand.shell("cat", f"elastic/{job}.out")
    finally:
        stand.shell("scancel", job)
        stand.wait_idle()
    return {"load": load, "steps": steps(stand, job, seen, output)}


def steps(stand: Stand, job: str, seen: str, output: str) -> list[dict[str, object]]:
    """The logged steps of each change; several lines if it took several attempts."""
    widths = [json.loads(line) for line in seen.splitlines()]
    ended = [one for one in changes(stand.script("logs", "service")) if one.job == job]
    locks = [one for one in resizes(stand.script("logs", "controller")) if one.job == job]
    spent = {number: (outcome, each) for number, outcome, each in stages(output)}
    asked = [(one["asked_s"], one["seen_s"]) for one in widths]
    found: list[dict[str, object]] = []
    serial = 0
    for change in ended:
        reached = {"adding", "leaving"} & set(change.entered_s)
        serial += bool(reached)
        outcome, each = spent.get(serial, ("", {})) if reached else ("", {})
        mine = [
            one for one in locks
            if change.begin_s - 0.1 <= one.at_s <= change.end_s + 0.1
        ]  # fmt: skip
        asked_s = max(
            (at for at, until in asked if at <= change.begin_s <= until), default=change.begin_s
        )
        found.append({
            "from": change.before, "to": change.after, "done": change.done,
            "total_s": round(change.end_s - asked_s, 3),
            "asked_s": round(change.begin_s - asked_s, 3),
            **{f"{name}_s": lasted for name, lasted in change.lasted_s().items()},
            "launcher": each, "outcome": outcome,
            "lock_ms": [one.lock_ms for one in mine],
            **({"why": change.why} if change.why else {}),
        })  # fmt: skip
    return found


def attempt(
    stand: Stand, engine: str, moves: str, number: int, given: argparse.Namespace
) -> dict[str, object]:
    label: dict[str, object] = {"engine": engine, "redistribution": moves, "run": number}
    say(f"{engine}, redistribution: {moves}, run {number + 1} of {given.runs}")
    try:
        result = label | run(stand, ENGINES[engine], moves, given)
    except (BenchError, OSError, ValueError) as error:
        say(f"  failed: {error}")
        return label | {"error": str(error)}
    say("  " + adaptation_table.in_short(result))
    return result


def measure(given: argparse.Namespace) -> list[dict[str, object]]:
    found = []
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as folder:
        config = Path(folder) / "bridge.yaml"
        text = (ROOT / "slurm_conf" / "bridge.yaml").read_text()
        config.write_text(f"{text}\nresizing: {json.dumps(WAITS)}\n")
        options = ("--containers", str(min(given.nodes, 64)), "--agents", "--image", "mpi",
                   "--service-config", str(config))  # fmt: skip
        with Stand(given.name, "bridge", given.nodes, say, options=options) as stand:
            say("compiling library and programs")
            compile_examples(stand)
            for number in range(given.runs):
                for engine in given.engines:
                    for moves in PROGRAMS:
                        found.append(attempt(stand, engine, moves, number, given))
                        if given.json:
                            write(given, found)
    return found


def write(given: argparse.Namespace, found: list[dict[str, object]]) -> None:
    head = {"nodes": given.nodes, "data_mib": given.data_mib, "probe_every_s": PAUSE_US / 1e6}
    results_file.write(given.json, {**about(), **head, "runs": found})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n", maxsplit=1)[0],
        epilog="A run of 32 nodes takes some minutes for each engine and program.",
    )
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--plot", type=Path, help="only draw this file, as .svg beside it")
    parser.add_argument("--nodes", type=int, default=32, help="the most nodes [%(default)s]")
    parser.add_argument("--runs", type=int, default=5, help="of each kind [%(default)s]")
    parser.add_argument("--engines", default="join,relaunch", help="[%(default)s]")
    parser.add_argument("--data-mib", type=int, default=8, help="of heat [%(default)s]")
    parser.add_argument("--patience-s", type=float, default=180, help="for each change")
    parser.add_argument("--name", default="adapt", help="of the cluster that is made [%(default)s]")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    given.engines = given.engines.split(",")
    if set(given.engines) - set(ENGINES):
        parser.error(f"--engines: of {', '.join(ENGINES)}")
    if not 2 <= given.nodes <= 64:
        parser.error("--nodes: 2 to 64, each in a container of its own")
    return given


def main() -> int:
    given = arguments()
    if results_file.shown(adaptation_table, given.show, given.plot):
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = measure(given)
    ran = [one for one in found if "steps" in one]
    print("\n".join(adaptation_table.lines({"runs": ran})))
    return int(len(ran) < len(found))


if __name__ == "__main__":
    sys.exit(main())
