# SPDX-License-Identifier: Apache-2.0
"""OpenPBS with the bridge and with its own pbs_sched, on the same real server.

Needs an installed OpenPBS (PBS_EXEC) and root; runs in namespaces of its own. The two schedulers
take turns on one server, `--rounds` times. Measured of each:
    start        submission to state R, ms: single jobs, empty queue
    drain        jobs that end at once: all submitted to all gone, jobs/s
    cpu          CPU time of server and scheduler for each of them, ms
    announce     waiting jobs: from the last submission until each has a comment, s
    query        `qstat` of one job meanwhile, ms

Usage: benchmarks/pbs.py [--out FILE] [--rounds N] [--singles N] [--drain N] [--announce N]
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.about import about
from benchmarks.results_file import write
from bridge.pbs.ifl.library import Library, find_library
from bridge.pbs.ifl.port import IflError
from bridge.pbs.ifl.structures import AttributeList
from tests.real_pbs.server import Server, wait_for
from tests.real_pbs.service import Bridge

SIDES = ("pbs_sched", "bridge")
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
        """Changes the scheduler."""
        self.server.delete_all()
        self.bridge.stop()
        if self.stock is not None:
            self.stock.terminate()
            self.stock.wait()
            self.stock = None
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
    """One turn of one scheduler."""
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
    for _ in range(options.announce):
        stand.submit("1:ncpus=4")
    began = time.perf_counter()
    row["announce_s"], queries = _announced(stand, began, options.announce)
    row |= _spread("query", queries)
    return row


def _announced(stand: Stand, began: float, count: int) -> tuple[float | None, list[float]]:
    queries: list[float] = []
    while time.perf_counter() - began < 300:
        asked = time.perf_counter()
        jobs = stand.library.stat_jobs(stand.connection, ("comment", "job_state"))
        queries.append((time.perf_counter() - asked) * 1e3)
        waiting = [job for job in jobs.values() if job["job_state"] == "Q"]
        if len(waiting) >= count and all("comment" in job for job in waiting):
            return round(time.perf_counter() - began, 2), queries
        time.sleep(0.1)
    return None, queries


def _spread(name: str, values: list[float]) -> dict[str, object]:
    ordered = sorted(values)
    return {
        f"{name}_ms_median": round(statistics.median(ordered), 1),
        f"{name}_ms_p95": round(ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)], 1),
    }


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/pbs.json"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--singles", type=int, default=20)
    parser.add_argument("--drain", type=int, default=40)
    parser.add_argument("--announce", type=int, default=200)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        world = [sys.executable, "-m", "tests.real_pbs.world", sys.executable, *sys.argv]
        sys.exit(subprocess.run([*world, "--inside"], check=False).returncode)
    stand, rows = Stand(4), []
    for at in range(options.rounds):
        for side in SIDES if at % 2 == 0 else SIDES[::-1]:
            rows.append({"round": at, **measure(stand, side, options)})
            print(rows[-1], flush=True)
            write(options.out, {**about(), "rows": rows})
    stand.bridge.stop()


if __name__ == "__main__":
    main()
