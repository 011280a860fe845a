# SPDX-License-Identifier: Apache-2.0
"""OpenPBS with the bridge and with its own pbs_sched, each on a new server of its own.

Needs an installed OpenPBS (PBS_EXEC) and root; runs in namespaces of its own. The two schedulers
take turns, `--rounds` times. Measured of each:
    start        submission to state R, ms: single jobs, empty queue
    drain        jobs that end at once: all submitted to all gone, jobs/s
    cpu          CPU time of server and scheduler for each of them, ms
    announce     waiting jobs: from the last submission until each has a comment, s; of as many as
                 `--announce` says, one number after the other
    query        meanwhile: the state of one job, asked ten times a second, ms

Usage: benchmarks/pbs.py [--out FILE] [--rounds N] [--singles N] [--drain N] [--announce N,N]
                         [--deep N]
       benchmarks/pbs.py --show FILE
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.about import about
from benchmarks.results_file import write
from bridge.pbs.ifl.library import Library, find_library
from bridge.pbs.ifl.port import IflError
from bridge.pbs.ifl.structures import AttributeList
from tests.real_pbs.server import Server, wait_for
from tests.real_pbs.service import Bridge

SIDES = ("pbs_sched", "bridge")
MARK = "row: "
"""Before the result of one side, among what PBS prints."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Stand:
    """One server, and the scheduler in force."""

    def __init__(self, moms: int) -> None:
        self.server = Server()
        self.server.start()
        self.server.add_moms(moms, "resources_available.ncpus=4,resources_available.mem=8gb")
        self.library = Library(find_library())
        self.connection = self.library.connect("")
        self.server.qmgr("set server acl_roots = root")
        self.script = Path("/var/spool/true.sh")
        self.script.write_text("#!/bin/sh\ntrue\n")
        self.bridge = Bridge()
        self.stock: subprocess.Popen[bytes] | None = None

    def use(self, side: str) -> None:
        """Starts the scheduler."""
        if side == "bridge":
            self.bridge.start_service()
            self.bridge.start_link()
        else:
            command = [self.server.exec / "sbin/pbs_sched", "-N"]
            self.stock = subprocess.Popen(command, env=self.server.env)
            time.sleep(2)

    def state(self, job_id: str) -> str:
        """Of a job; empty: it is gone."""
        try:
            found = self.library._stat(
                "job", self.connection, "pbs_statjob", job_id.encode(), None, None
            )
        except IflError:
            return ""
        return str(found[job_id]["job_state"])

    def submit(self, select: str) -> str:
        """Submits a job that ends at once, on a connection that is open already."""
        asked = AttributeList.set_to(
            {"Resource_List": {"select": select}, "Mail_Points": "n", "Output_Path": "/dev/null",
             "Error_Path": "/dev/null"}
        )  # fmt: skip
        call = self.library.function("pbs_submit", ctypes.c_char_p)
        found = call(self.connection, asked.head, str(self.script).encode(), None, None)
        if not found:
            raise RuntimeError("the server does not accept a job")
        job_id: str = found.decode()
        return job_id

    def start_ms(self) -> float:
        """Submits a job; returns after how many ms it runs."""
        began = time.perf_counter()
        job_id = self.submit("1:ncpus=1")
        while self.state(job_id) == "Q":
            time.sleep(0.001)
        return (time.perf_counter() - began) * 1e3

    def cpu_s(self) -> dict[str, float]:
        """CPU time of the server, and of whatever schedules."""
        found = {"server": 0.0, "scheduler": 0.0}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                line = (folder / "cmdline").read_bytes()
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            kind = "server" if b"pbs_server" in line else ""
            if any(word in line for word in (b"pbs_sched", b"bridge.cli", b"bridge.pbs", b"spawn")):
                kind = "scheduler"
            if kind:
                found[kind] += (int(stat[11]) + int(stat[12])) / _TICKS
        return found


def measure(stand: Stand, side: str, options: argparse.Namespace) -> dict[str, object]:
    """One scheduler on a new server."""
    stand.use(side)
    row: dict[str, object] = {"scheduler": side}
    times = []
    for _ in range(options.singles):
        times.append(stand.start_ms())
        time.sleep(0.25)
    row |= _spread("start", times)
    before, began = stand.cpu_s(), time.perf_counter()
    for _ in range(options.drain):
        stand.submit("1:ncpus=1")
    wait_for("an empty queue", lambda: not stand.server.run("qselect"), 600, 0.2)
    took, after = time.perf_counter() - began, stand.cpu_s()
    row["drain_jobs_per_s"] = round(options.drain / took, 2)
    for kind, spent in after.items():
        row[f"{kind}_cpu_ms_per_job"] = round((spent - before[kind]) / options.drain * 1e3, 1)
    stand.server.qsub("-l", "select=4:ncpus=4")
    waiting, last = 0, ""
    for count in options.announce:
        while waiting < count:
            last = stand.submit("1:ncpus=4")
            waiting += 1
        row[f"announce_{count}_s"], queries = _announced(stand, count, last, options.watch)
        row |= _spread(f"query_{count}", queries)
    return row


def _announced(
    stand: Stand, count: int, job_id: str, watch_s: float
) -> tuple[float | None, list[float]]:
    began, looks_s = time.perf_counter(), 0.0
    queries: list[float] = []
    while time.perf_counter() - began < watch_s:
        asked = time.perf_counter()
        stand.state(job_id)
        queries.append((time.perf_counter() - asked) * 1e3)
        if asked >= looks_s:
            jobs = stand.library.stat_jobs(stand.connection, ("comment", "job_state"))
            waiting = [job for job in jobs.values() if job["job_state"] == "Q"]
            if len(waiting) >= count and all("comment" in job for job in waiting):
                return round(time.perf_counter() - began, 2), queries
            # Looking at all jobs costs the server time: at most a twentieth of it.
            looks_s = time.perf_counter() + 20 * (time.perf_counter() - asked)
        time.sleep(0.1)
    return None, queries


def _spread(name: str, values: list[float]) -> dict[str, object]:
    ordered = sorted(values)
    return {
        f"{name}_ms_median": round(statistics.median(ordered), 1),
        f"{name}_ms_p95": round(ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)], 1),
    }


_SHOWN = (
    ("submit to run, median, ms", "start_ms_median", 1),
    ("submit to run, p95, ms", "start_ms_p95", 1),
    ("jobs that end at once, jobs/s", "drain_jobs_per_s", 1),
    ("CPU of the server per job, ms", "server_cpu_ms_per_job", 1),
    ("CPU of the scheduler per job, ms", "scheduler_cpu_ms_per_job", 1),
)


def lines(found: dict[str, Any]) -> list[str]:
    """A table: median of the rounds, and their range."""
    rows = found["rows"]
    counts = sorted({int(k.split("_")[1]) for r in rows for k in r if k.startswith("announce_")})
    shown = list(_SHOWN)
    for count in counts:
        shown += [
            (f"{count:,} waiting jobs announced, s", f"announce_{count}_s", 1),
            (f"a query meanwhile, median, ms ({count:,})", f"query_{count}_ms_median", 1),
            (f"a query meanwhile, p95, ms ({count:,})", f"query_{count}_ms_p95", 1),
        ]
    table = [f"| measured | {' | '.join(SIDES)} |", "| --- | ---: | ---: |"]
    for title, key, digits in shown:
        cells = []
        for side in SIDES:
            known = sorted(
                r[key] for r in rows if r["scheduler"] == side and r.get(key) is not None
            )
            cells.append(_range(known, digits) if known else "–")
        table.append(f"| {title} | {' | '.join(cells)} |")
    return table


def _range(known: list[float], digits: int) -> str:
    low, high = f"{known[0]:,.{digits}f}", f"{known[-1]:,.{digits}f}"
    middle = f"{statistics.median(known):,.{digits}f}"
    return middle if low == high else f"{middle} ({low}–{high})"


def inside(options: argparse.Namespace) -> None:
    """Measures one side, in a world of its own, and prints the row."""
    stand = Stand(4)
    try:
        row = measure(stand, options.inside, options)
    finally:
        stand.bridge.stop()
    print(MARK + json.dumps(row), flush=True)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/pbs.json"))
    parser.add_argument("--show", type=Path, help="print the table of a results file")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--singles", type=int, default=25)
    parser.add_argument("--drain", type=int, default=40)
    parser.add_argument("--watch", type=float, default=600.0, help="longest wait for comments, s")
    parser.add_argument(
        "--announce", type=lambda word: [int(n) for n in word.split(",")], default=[1000]
    )
    parser.add_argument(
        "--deep", type=int, default=0, help="in the first round, as many waiting jobs in the end"
    )
    parser.add_argument("--inside", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.show:
        print("\n".join(lines(json.loads(options.show.read_text()))))
        return
    if options.inside:
        inside(options)
        return
    world = [sys.executable, "-m", "tests.real_pbs.world", sys.executable, *sys.argv, "--inside"]
    rows: list[dict[str, object]] = []
    for at in range(options.rounds):
        for side in SIDES if at % 2 == 0 else SIDES[::-1]:
            announce = [*options.announce, *([options.deep] if options.deep and not at else [])]
            words = [*world, side, "--announce", ",".join(map(str, announce))]
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
            row = next(line for line in done.stdout.splitlines() if line.startswith(MARK))
            rows.append({"round": at, **json.loads(row.removeprefix(MARK))})
            print(rows[-1], flush=True)
            write(options.out, {**about(), "rows": rows})


if __name__ == "__main__":
    main()
