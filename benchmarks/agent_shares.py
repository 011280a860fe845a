# SPDX-License-Identifier: Apache-2.0
"""What it costs an agent to keep the CPU share of a job of many processes, in real cgroups (v1).

Usage: benchmarks/agent_shares.py [--json FILE]     as root, with a C compiler
       benchmarks/agent_shares.py --show FILE

A job is a directory of the freezer, as Slurm makes it. All its processes are to be moved into a
cgroup of their own in the hierarchy `cpu`. In the cases `resting` they do nothing; in `forking` one
is replaced by its child each millisecond. Reported are the looks and the seconds until all are
inside, the agent's CPU time of a look afterwards (the median of `LOOKS`), and the seconds to give
everything back. The program runs at nice -10, as the agent does; other processes add to its times.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from about import about
from results_file import write

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share

ROOT = Path("/sys/fs/cgroup")
JOB = "7"
CASES = (("resting", 100), ("resting", 1000), ("resting", 10_000), ("forking", 300))
LOOKS, MOST_LOOKS = 10, 50
PF_EXITING = 0x4
SETTLE_S = 10
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int forks = !strcmp(words[1], "forking");
    for (int i = atoi(words[2]); i > 0; i--) {
        if (fork())
            continue;
        while (forks) {
            usleep(1000);
            if (fork())
                _exit(0);
        }
        for (;;)
            pause();
    }
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        usleep(10000);
    }
}
"""


class Job:
    """A job's processes, in a directory of the freezer."""

    def __init__(self, program: Path, kind: str, processes: int) -> None:
        self.node = f"bench{os.getpid()}"
        self.folder = ROOT / "freezer" / f"slurm_{self.node}" / "uid_0" / f"job_{JOB}"
        self.folder.mkdir(parents=True)
        procs = self.folder / "cgroup.procs"
        words = f'echo $$ >{procs}; exec "$0" {kind} {processes}'
        self._shell = subprocess.Popen(["sh", "-c", words, program])
        while len(self.pids()) < 0.9 * processes:
            time.sleep(0.05)

    def pids(self) -> set[str]:
        """All its processes."""
        return set((self.folder / "cgroup.procs").read_text().split())

    def end(self) -> None:
        """Kills all at once, and removes the directory."""
        state = self.folder / "freezer.state"
        while pids := self.pids():
            state.write_text("FROZEN")
            while state.read_text() == "FREEZING\n":
                time.sleep(0.01)
            for pid in self.pids() | pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            state.write_text("THAWED")
            self._shell.poll()
            time.sleep(0.05)
        self._shell.wait()
        for folder in (self.folder, self.folder.parent, self.folder.parent.parent):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    time.sleep(0.05)


def measure(program: Path, kind: str, processes: int, folder: Path) -> dict[str, object]:
    """One case."""
    job = Job(program, kind, processes)
    try:
        keeper = ShareKeeper([job.node], ShareRecord(folder / "shares.json"), Processes(), cpus=2)
        share = Share(job.node, JOB, guest=True, milli_cpus=500, weight=1)
        began, looks, outside = time.monotonic(), 0, 1
        while outside and looks < MOST_LOOKS:
            keeper.order(1, 8, [share])
            keeper.look()
            looks += 1
            listed = job.pids()  # first: a child that is born later is where its parent is
            inside = (keeper.cgroups[job.node, JOB] / "cgroup.procs").read_text().split()
            outside = len(listed - set(inside) - _ended(listed - set(inside)))
        bound_s = time.monotonic() - began
        spent = []
        for _ in range(LOOKS):
            keeper.order(1, 8, [share])
            before = time.process_time()
            keeper.look()
            spent.append(time.process_time() - before)
        began = time.monotonic()
        keeper.order(2, 8, [])
        while not keeper.is_idle:
            keeper.look()
        restored_s = time.monotonic() - began
    finally:
        job.end()
    return {
        "kind": kind, "processes": processes, "looks": looks, "left_outside": outside,
        "bound_s": round(bound_s, 3), "look_cpu_ms": round(1000 * statistics.median(spent), 2),
        "restored_s": round(restored_s, 3),
    }  # fmt: skip


def _ended(pids: set[str]) -> set[str]:
    """Those that have ended or are ending: they fork no more, and the kernel moves them nowhere."""
    found = set()
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            found.add(pid)
            continue
        if stat[0] in (b"Z", b"X") or int(stat[6]) & PF_EXITING:
            found.add(pid)
    return found


def show(found: dict[str, object]) -> None:
    """Prints the table."""
    print("| processes | | looks | bound after s | CPU of a look, ms | given back in s |")
    print("|--:|---|--:|--:|--:|--:|")
    for case in found["cases"]:  # type: ignore[attr-defined]
        print(
            f"| {case['processes']:,} | {case['kind']} | {case['looks']} | {case['bound_s']:.2f} "
            f"| {case['look_cpu_ms']:.1f} | {case['restored_s']:.2f} |"
        )


def main() -> None:
    """Measures, or shows what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.show:
        show(json.loads(given.show.read_text()))
        return
    for kind in ("cpu", "freezer"):
        if not os.access(ROOT / kind / "cgroup.procs", os.W_OK):
            sys.exit(f"{ROOT / kind}: not a writable hierarchy of cgroup v1; run it as root")
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O1", "-o", folder / "job", folder / "job.c"], check=True)
        cases = [measure(folder / "job", *case, folder) for case in CASES]
    time.sleep(SETTLE_S)  # until init has taken note of so many ends, no program can be started
    found = {**about(), "cases": cases}
    if given.json:
        write(given.json, found)
    show(found)


if __name__ == "__main__":
    main()
