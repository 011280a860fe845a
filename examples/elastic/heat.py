# SPDX-License-Identifier: Apache-2.0
"""Heat in a square plate by Jacobi's method, with mpi4py.

Usage: python heat.py ROWS COLUMNS STEPS [PROBE_EVERY [PAUSE_S]]. Its last line is the same at any
widths.
"""

import hashlib
import sys
import time

import numpy as np
from mpi4py import MPI

from bridge.extensions.elastic.mpi import Elastic, move_blocks

rows, columns, steps = map(int, sys.argv[1:4])
every = int(sys.argv[4]) if len(sys.argv) > 4 else 10
pause_s = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0


def span(comm):
    """This process's rows: the first, and the one after the last."""
    return rows * comm.rank // comm.size, rows * (comm.rank + 1) // comm.size


def jacobi(comm, plate):
    """One step."""
    first, end = span(comm)
    up = comm.rank - 1 if comm.rank else MPI.PROC_NULL
    down = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    wide = np.zeros((len(plate) + 2, columns))
    wide[1:-1] = plate
    comm.Sendrecv(plate[0].copy(), up, 0, wide[-1], down, 0)
    comm.Sendrecv(plate[-1].copy(), down, 1, wide[0], up, 1)
    new = plate.copy()
    new[:, 1:-1] = 0.25 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])
    if first == 0:
        new[0] = plate[0]
    if end == rows:
        new[-1] = plate[-1]
    return new


elastic = Elastic()
adapt = elastic.joining
if not elastic.joining:
    first, end = span(elastic.comm)
    elastic.shared["step"], elastic.kept["plate"] = 0, np.zeros((end - first, columns))
    if first == 0:
        elastic.kept["plate"][0] = 100.0 + 0.1 * (np.arange(columns) % 7)
while adapt or elastic.shared["step"] < steps:
    if adapt:
        with elastic.window() as window:
            move_blocks(window, elastic.kept, "plate", rows)
        if elastic.comm.rank == 0:
            print(f"heat.py: step {elastic.shared['step']} width {elastic.comm.size}", flush=True)
    elastic.kept["plate"] = jacobi(elastic.comm, elastic.kept["plate"])
    time.sleep(pause_s)
    elastic.shared["step"] += 1
    adapt = elastic.shared["step"] % every == 0 and elastic.probe()
blocks = elastic.comm.gather(elastic.kept["plate"])
if blocks is not None:
    print("heat.py: hash", hashlib.sha256(np.concatenate(blocks).tobytes()).hexdigest()[:16])
elastic.finalize()
