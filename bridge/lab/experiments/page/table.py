# SPDX-License-Identifier: Apache-2.0
"""One table over all runs: a row for each run and class of jobs, a column for each measure.

| columns | |
|---|---|
| `key` ... `commit` | the cell: what was run (`bridge.lab.experiments.cell`) |
| `status`, `cpu_s`, `date`, `command` | of the run; failed cells have one row without measures |
| `class_kind`, `class`, `jobs` | the class (`statistics/classes.py`) and its judged jobs |
| `wait_mean` ... | the measures (`statistics/quantities.py`), in s or as ratios |
| `utilisation`, `makespan` | of the whole run: in the rows of all jobs only |

Jobs are trimmed as in the comparison. Unknown values are empty (CSV) or null (Parquet).
"""

import csv
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any, Final

from bridge.extras import need
from bridge.files import naming
from bridge.lab.experiments.cell import canonical
from bridge.lab.experiments.statistics.classes import classes_of
from bridge.lab.experiments.statistics.jobs import RunPair, Trim
from bridge.lab.experiments.statistics.quantities import OF_JOBS, OF_RUNS, of_run
from bridge.lab.experiments.statistics.reading import Bench, StoredResult
from bridge.line_text import on_one_line

_CELL: Final = (
    "key", "policy", "predictor", "trace", "trace_sha256", "seed", "perturbation", "parameters",
    "setting", "engine", "version", "commit",
)  # fmt: skip
_TEXT: Final = (*_CELL, "status", "date", "command", "class_kind", "class")
_WHOLE: Final = ("seed", "jobs", "unfinished")
COLUMNS: Final = (
    *_CELL, "status", "cpu_s", "date", "command", "unfinished", "class_kind", "class", "jobs",
    *(quantity.name for quantity in OF_JOBS + OF_RUNS),
)  # fmt: skip

Row = dict[str, Any]


def rows(bench: Bench, trim: Trim) -> Iterator[Row]:
    """Yields the rows; the jobs of one run at a time are in memory.

    Raises:
        ResultError: the jobs of a run cannot be read.
    """
    for contestants in bench.cells.values():
        for seeds in contestants.values():
            for kept in seeds.values():
                yield from _of_run(kept, trim)
    for kept in bench.failed:
        yield _head(kept)


def _of_run(kept: StoredResult, trim: Trim) -> Iterator[Row]:
    jobs = kept.jobs()
    judged = trim.judged(jobs.submit_s)
    whole = of_run(RunPair(jobs, jobs, judged, 0)) if len(jobs) else {}
    inside = jobs[judged]
    for job_class, members in classes_of(inside):
        row = {
            **_head(kept), "class_kind": job_class.kind, "class": job_class.name,
            "jobs": int(members.sum()),
        }  # fmt: skip
        row |= {quantity.name: quantity.of(inside[members]) for quantity in OF_JOBS}
        if job_class.kind == "all":
            row |= {name: value for name, (value, _) in whole.items()}
        yield row


def _head(kept: StoredResult) -> Row:
    result, cell = kept.result, kept.result.cell
    head = {name: getattr(cell, name) for name in _CELL}
    head["parameters"], head["setting"] = (
        canonical(dict(value)) for value in (cell.parameters, cell.setting)
    )
    return {
        **head,
        "status": result.status,
        "cpu_s": result.cpu_s,
        "date": result.provenance.get("date"),
        "command": result.provenance.get("command"),
        "unfinished": result.results.get("unfinished"),
    }


def _shown(value: Any) -> Any:
    unknown = value is None or (isinstance(value, float) and isnan(value))
    if unknown:
        return ""
    return on_one_line(value) if isinstance(value, str) else value


def write_csv(path: Path, bench: Bench, trim: Trim) -> int:
    """Writes the table; returns the number of rows.

    Raises:
        OSError: the file cannot be written.
        ResultError: the jobs of a run cannot be read.
    """
    number = 0
    with naming(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for row in rows(bench, trim):
            writer.writerow({name: _shown(value) for name, value in row.items()})
            number += 1
    return number


def write_parquet(path: Path, bench: Bench, trim: Trim) -> int:
    """Writes the table as Parquet; returns the number of rows.

    Raises:
        ConfigError: pyarrow is not installed.
        OSError: the file cannot be written.
        ResultError: the jobs of a run cannot be read.
    """
    need("pyarrow", "experiments", "parquet")
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    kinds = {
        name: pa.int64() if name in _WHOLE else pa.string() if name in _TEXT else pa.float64()
        for name in COLUMNS
    }
    found = list(rows(bench, trim))
    columns = {
        name: pa.array([row.get(name) for row in found], type=kind, from_pandas=True)
        for name, kind in kinds.items()
    }
    content = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), content)
    with naming(path):
        path.write_bytes(content.getvalue())
    return len(found)
