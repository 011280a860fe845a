#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clusters side by side: the bridge, Slurm's backfill with defaults, and tuned.

usage: benchmarks/cluster.py [latency] [throughput] [array] [mixed] [deep] [options]

Every part runs on the same number of real slurmds for each scheduler, in one run on one machine;
see benchmarks/README.md for what is measured and how. Prints JSON (or writes it with --json);
`benchmarks/cluster_table.py FILE` makes a Markdown table of it. A failed part is recorded with its
error, and the others continue. Ends with status 1 if any failed.
"""

import argparse
import json
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from about import about
from cluster_bench import deep, latency, rates, throughput
from cluster_bench.meters import machine, wait_quiet
from cluster_bench.stand import CPUS_PER_NODE, BenchError, Stand
from progress import say
from results_file import as_text, write

PARTS = ("latency", "throughput", "array", "mixed", "deep")
SCHEDULERS = ("backfill", "backfill-tuned", "bridge")
Result = dict[str, object]


@dataclass(frozen=True)
class Deep:
    """A deep queue: the numbers of jobs and of full nodes, and the time for which it is watched."""

    jobs: int
    nodes: int
    bound_s: float


def deep_queue(text: str) -> Deep:
    """Reads JOBSxNODES; the bound grows with the queue."""
    try:
        jobs, nodes = (int(part) for part in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not JOBSxNODES, as in 1000x256") from None
    if jobs < 1 or nodes < 1:
        raise argparse.ArgumentTypeError(f"'{text}': both must be positive")
    return Deep(jobs, nodes, 90 if jobs <= 2000 else 120)


def schedulers(text: str) -> list[str]:
    chosen = text.split(",")
    for name in chosen:
        if name not in SCHEDULERS:
            raise argparse.ArgumentTypeError(f"'{name}' is not one of {', '.join(SCHEDULERS)}")
    return chosen


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n", maxsplit=1)[0],
        epilog="The whole run takes about 50 minutes on two CPUs, --quick about 9.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--schedulers", type=schedulers, default=list(SCHEDULERS))
    parser.add_argument("--nodes", type=positive, default=64, help="of all parts but deep")
    parser.add_argument("--jobs", type=positive, help="short jobs of throughput (2000)")
    parser.add_argument("--tasks", type=positive, help="of the array, and of mixed (1000)")
    parser.add_argument("--latency-jobs", type=positive, help="jobs of a latency round (60)")
    parser.add_argument("--repeats", type=positive, help="rounds of all parts but deep (3)")
    parser.add_argument(
        "--deep", type=deep_queue, action="append", metavar="JOBSxNODES",
        help="deep queues, repeatable (1000x256 and 10000x1000)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--patience-s", type=float, default=60, metavar="S",
        help="longest wait for a quiet machine before each measurement (60)",
    )  # fmt: skip
    parser.add_argument("--name", default="bench", help="of the cluster that is made (bench)")
    parser.add_argument("--quick", action="store_true", help="fewer jobs, one round, one queue")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write here, not to stdout")
    parser.add_argument(
        "--add", action="store_true",
        help="keep the results in FILE, except those of the same part and scheduler",
    )  # fmt: skip
    chosen = parser.parse_args()
    if chosen.add and chosen.json is None:
        parser.error("--add needs --json FILE")
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"'{min(unknown)}' is not a part: there are {', '.join(PARTS)}")
    quick = chosen.quick
    chosen.parts = chosen.parts or list(PARTS)
    chosen.jobs = chosen.jobs or (400 if quick else 2000)
    chosen.tasks = chosen.tasks or (300 if quick else 1000)
    chosen.latency_jobs = chosen.latency_jobs or (30 if quick else 60)
    chosen.repeats = chosen.repeats or (1 if quick else 3)
    chosen.deep = chosen.deep or (
        [Deep(1000, 256, 45)] if quick else [Deep(1000, 256, 90), Deep(10_000, 1000, 120)]
    )
    return chosen


def attempt(label: Result, measure: Callable[[], Result], patience_s: float) -> Result:
    """One measurement, when the machine is idle: its figures, or its error."""
    what = " ".join(str(value) for value in label.values())
    busy = wait_quiet(patience_s)
    if busy > 0.3:
        say(f"{what}: the machine is not quiet, {busy:.1f} CPUs are in use")
    try:
        result = label | measure()
    except (BenchError, OSError, ValueError, TimeoutError) as error:
        result = label | {"error": str(error)}
    except Exception as error:  # a part that breaks must not lose the others
        result = label | {"error": f"{type(error).__name__}: {error}"}
    shown = {key: value for key, value in result.items() if key not in label and key != "load"}
    say(f"{what}: {json.dumps(shown)}")
    return result


def small_cluster(options: argparse.Namespace, scheduler: str) -> Iterator[Result]:
    """All parts but the deep queues, on one cluster."""
    parts = [part for part in PARTS if part in options.parts and part != "deep"]
    if not parts:
        return
    try:
        with Stand(options.name, scheduler, options.nodes, say) as stand:
            for part in parts:
                for repeat in range(options.repeats):
                    label: Result = {"part": part, "scheduler": scheduler, "repeat": repeat}
                    yield attempt(
                        label, measurement(options, part, repeat, stand), options.patience_s
                    )
    except (BenchError, OSError) as error:
        yield {"part": "cluster", "scheduler": scheduler, "error": str(error)}
        say(f"{scheduler}: {error}")


def measurement(
    options: argparse.Namespace, part: str, repeat: int, stand: Stand
) -> Callable[[], Result]:
    """One round of a part; rounds differ in their seed."""
    seed = options.seed + repeat
    if part == "latency":
        return partial(latency.measure, stand, jobs=options.latency_jobs, seed=seed)
    if part == "throughput":
        return partial(throughput.measure, stand, jobs=options.jobs, bound_s=60 + options.jobs / 8)
    submissions = (rates.array if part == "array" else rates.mixed)(options.tasks, seed)
    return partial(rates.measure, stand, submissions, bound_s=60 + options.tasks / 2)


def deep_queues(options: argparse.Namespace, scheduler: str) -> Iterator[Result]:
    """One cluster for each deep queue."""
    if "deep" not in options.parts:
        return
    for queue in options.deep:
        label: Result = {"part": "deep", "scheduler": scheduler}

        def measure(queue: Deep = queue) -> Result:
            with Stand(options.name, scheduler, queue.nodes, say, whole_queue=True) as stand:
                return deep.measure(
                    stand, jobs=queue.jobs, bound_s=queue.bound_s,
                    shortest_s=min(40.0, queue.bound_s), seed=options.seed,
                )  # fmt: skip

        yield attempt(
            label | {"jobs": queue.jobs, "nodes": queue.nodes}, measure, options.patience_s
        )


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    former = _former(options.json) if options.add else []
    results: list[Result] = []
    report: dict[str, object] = {
        "benchmark": "cluster",
        **about(),
        "machine": machine() | {"python": platform.python_version()},
        "cpus_per_node": CPUS_PER_NODE,
        "seed": options.seed,
        "results": former,
    }
    status = 0
    try:
        for measure in (small_cluster, deep_queues):
            for scheduler in options.schedulers:
                for result in measure(options, scheduler):
                    results.append(result)
                    known = set(map(_what, results))
                    kept = [one for one in former if _what(one) not in known]
                    report["results"] = kept + results
                    _write(report, options.json)
    except KeyboardInterrupt:
        say("interrupted; what was measured is kept")
        status = 130
    if options.json is None:
        print(as_text(report))
    return status or int(any("error" in result for result in results))


def _what(result: Result) -> tuple[object, ...]:
    """Rounds of the same measurement share it."""
    queue = (result.get("jobs"), result.get("nodes")) if result["part"] == "deep" else ()
    return (result["part"], result["scheduler"], *queue)


def _former(path: Path) -> list[Result]:
    """The results of an earlier run; empty if there was none."""
    if not path.exists():
        return []
    try:
        found: list[Result] = json.loads(path.read_text())["results"]
    except (ValueError, KeyError, TypeError):
        sys.exit(f"cluster.py: {path} is not from an earlier run: --json another FILE")
    return found


def _write(report: dict[str, object], path: Path | None) -> None:
    """Writes the file; after each part, so that an interrupted run keeps its results."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, report)


if __name__ == "__main__":
    sys.exit(main())
