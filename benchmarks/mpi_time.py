#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of measuring the time in MPI, and the measured ratio of real programs.

`mpi_time.py [--json FILE] [--svg FILE] MPICC [MPICC]...`: compilers of the MPIs; beside the first
one is mpiexec. Needs make.

| part | is |
|---|---|
| cost | ns of a call of MPI_Test (the shortest that counts) without and with the library, in turn |
| ratio | of examples/elastic by processes and size of input, as the agent reads it from pages |

The ratios depend on the machine and its load, which are in the file: if processes wait for a core,
other processes wait for them in MPI.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from about import ROOT, about
from results_file import as_text

from bridge.agent.job_folders import JobFolders
from bridge.agent.pages import Pages
from bridge.agent.processes import Processes
from bridge.extensions.elastic.library import FOLDER as ELASTIC
from bridge.extensions.elastic.mpitime import FOLDER

LOOP = """
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) {
    MPI_Init(&c, &v);
    MPI_Request r = MPI_REQUEST_NULL;
    int done, n = 5000000;
    double best = 1e9;
    for (int k = 0; k < 5; k++) {
        double t = MPI_Wtime();
        for (int i = 0; i < n; i++) MPI_Test(&r, &done, MPI_STATUS_IGNORE);
        t = (MPI_Wtime() - t) / n * 1e9;
        if (t < best) best = t;
    }
    printf("%.2f\\n", best);
    return MPI_Finalize();
}
"""
ROUNDS = 5
PROCESSES = (1, 2, 4)
PROGRAMS = {
    "heat": [(n, ("heat", str(n), str(n), "1000000000", "1000")) for n in (128, 512, 2048)],
    "pi": [(n, ("pi", "1000000000", str(n))) for n in (1000, 30_000, 1_000_000)],
}
"""Size of input (rows; points of a round), and the command."""
LEAST_S, RATIO_S = 1.0, 3.0
"""Left out at the beginning; measured."""
JOB = str(os.getpid())
"""Of all programs."""


def main() -> None:
    """The command."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("mpicc", nargs="+", type=Path)
    words.add_argument("--json", type=Path)
    words.add_argument("--svg", type=Path)
    given = words.parse_args()
    found: dict[str, Any] = {"cost": [], "ratio": []}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        _run("make", "-s", "-f", FOLDER / "Makefile", f"OUT={out}")
        for number, mpicc in enumerate(given.mpicc):
            place = out / str(number)
            place.mkdir()
            found["cost"].append(cost(mpicc, out, place))
            print(found["cost"][-1], file=sys.stderr)
        found["ratio"] = ratios(given.mpicc[0], out)
    text = as_text({**about(), **found})
    print(text)
    if given.json:
        given.json.write_text(text + "\n")
    if given.svg:
        draw(found["ratio"], given.svg)


def cost(mpicc: Path, out: Path, place: Path) -> dict[str, Any]:
    """Of a call, ns: medians of ROUNDS runs, each the best of five loops."""
    (place / "loop.c").write_text(LOOP)
    _run(mpicc, "-O2", "-o", place / "loop", place / "loop.c")
    (place / "jobs" / JOB).mkdir(parents=True)
    runs: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for measured, taken in runs.items():
            taken.append(float(_run(place / "loop", env=_env(out, place / "jobs", measured))))
    without, with_it = (statistics.median(taken) for taken in runs.values())
    return {
        "mpi": _version(mpicc, place),
        "without_ns": without,
        "with_ns": with_it,
        "cost_ns": round(with_it - without, 2),
        "runs_ns": [runs[False], runs[True]],
    }


def _version(mpicc: Path, place: Path) -> str:
    (place / "version.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(void) {"
        " char s[MPI_MAX_LIBRARY_VERSION_STRING]; int n; MPI_Get_library_version(s, &n); puts(s); }"
    )
    _run(mpicc, "-o", place / "version", place / "version.c")
    version = _run(place / "version").split("\n")[0]
    return " ".join(version.split(",")[0].split()[:4])


def ratios(mpicc: Path, out: Path) -> list[dict[str, Any]]:
    """The ratio of each program, size and number of processes."""
    _run("make", "-s", "-f", ELASTIC / "Makefile", f"MPICC={mpicc}", f"OUT={out}")
    found = []
    for name, sizes in PROGRAMS.items():
        source, library = ROOT / f"examples/elastic/{name}.c", out / "libbridge_elastic.a"
        _run(mpicc, "-O2", f"-I{ELASTIC}", "-o", out / name, source, library, "-lm")
        for size, (program, *words) in sizes:
            for processes in PROCESSES:
                command = [
                    mpicc.parent / "mpiexec", "-n", str(processes), out / program, *words
                ]  # fmt: skip
                found.append({
                    "program": name, "size": size, "processes": processes,
                    **ratio([str(word) for word in command], out),
                })  # fmt: skip
                print(found[-1], file=sys.stderr)
    return found


def ratio(command: list[str], out: Path) -> dict[str, float]:
    """The ratio that an agent would read of a program, from LEAST_S on for RATIO_S."""
    (out / "jobs" / JOB).mkdir(parents=True, exist_ok=True)
    folders = JobFolders(out / "jobs")
    pages = Pages(Processes(folders=folders), folders)
    program = subprocess.Popen(
        command, env=_env(out, out / "jobs", measured=True),
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        time.sleep(LEAST_S)
        pages.read(time.monotonic_ns())
        time.sleep(RATIO_S)
        use = next(use for (of, _), use in pages.read(time.monotonic_ns()).items() if of == JOB)
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait()
    return {
        "mpi_s": round(use.mpi_s, 4),
        "wall_s": round(use.wall_s, 4),
        "mtct": float(f"{use.mpi_s / (use.wall_s - use.mpi_s):.3g}"),
    }


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """A panel per program; a line per size of input."""
    import matplotlib as mpl  # noqa: PLC0415  only for a plot

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "mpi time"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, panels = plt.subplots(1, len(PROGRAMS), figsize=(8, 3.6), sharey=True)
    units = {"heat": "rows and columns", "pi": "points a round"}
    for axes, name in zip(panels, PROGRAMS, strict=True):
        own = [row for row in found if row["program"] == name]
        for size in dict.fromkeys(row["size"] for row in own):
            line = [row for row in own if row["size"] == size]
            axes.plot(
                [row["processes"] for row in line], [row["mtct"] for row in line],
                marker="o", label=f"{size:,}",
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(PROCESSES, [str(count) for count in PROCESSES])
        axes.set_xlabel(f"processes ({os.cpu_count()} cores)")
        axes.set_title(name)
        axes.grid(alpha=0.3)
        axes.legend(title=units[name])
    panels[0].set_ylabel("MPI time / computing time")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _env(out: Path, folders: Path, measured: bool) -> dict[str, str]:
    ours = {"SCHEDBRIDGE_JOB_FOLDERS": str(folders), "SLURM_JOB_ID": JOB}
    if measured:
        ours["LD_PRELOAD"] = str(out / "libschedbridge_mpitime.so")
    return {**os.environ, **ours}


def _run(*command: object, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
