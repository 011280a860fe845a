# SPDX-License-Identifier: Apache-2.0
"""A Gantt chart of letters, for tests and failure messages: a line per node, a column per second.

  0         1
  0123456789012
n0 aaaabbbb....
n1 aaaacccccccc
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
MAX_COLUMNS = 160


def ascii_gantt(
    node_names: Sequence[str],
    start_s: NDArray[np.int64],
    end_s: NDArray[np.int64],
    indptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
    *,
    origin_s: int | None = None,
    column_s: int | None = None,
) -> str:
    """Draws which job holds which node when.

    Args:
        start_s: (n_jobs,) s; jobs without nodes are not drawn.
        end_s: (n_jobs,) s.
        indptr: (n_jobs + 1,) job i is drawn as `LETTERS[i]` ...
        nodes: ... on nodes[indptr[i]:indptr[i + 1]].
        origin_s: the first column; None: the first start.
        column_s: seconds per column; None: 1, or more if needed to fit `MAX_COLUMNS`.

    Returns:
        The chart. `.` is idle; `#` marks several jobs in one cell (sharing a node, or a column).
    """
    drawn = np.flatnonzero(np.diff(indptr) > 0)
    label = max((len(name) for name in node_names), default=0)
    if not len(drawn):
        return "\n".join(f"{name:>{label}} " for name in node_names)
    origin = int(start_s[drawn].min()) if origin_s is None else origin_s
    span = int(end_s[drawn].max()) - origin
    step = column_s if column_s is not None else max(1, -(-span // MAX_COLUMNS))
    width = max(1, -(-span // step))
    cells = np.full((len(node_names), width), ".", dtype="<U1")
    for job in drawn.tolist():
        first = (int(start_s[job]) - origin) // step
        last = max(first + 1, -(-(int(end_s[job]) - origin) // step))
        for node in nodes[indptr[job] : indptr[job + 1]].tolist():
            row = cells[node, first:last]
            row[:] = np.where(row == ".", LETTERS[job % len(LETTERS)], "#")
    tens = "".join(str(column // 10 % 10) if column % 10 == 0 else " " for column in range(width))
    ones = "".join(str(column % 10) for column in range(width))
    lines = [f"{'':>{label}} {tens}", f"{'':>{label}} {ones}"]
    lines += [
        f"{name:>{label}} {''.join(row)}" for name, row in zip(node_names, cells, strict=True)
    ]
    if step > 1:
        lines.append(f"{'':>{label}} one column is {step} s")
    return "\n".join(line.rstrip() for line in lines)
