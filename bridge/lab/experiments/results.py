# SPDX-License-Identifier: Apache-2.0
"""The folder of an experiment's results: two files for each cell, and one for all.

`experiment.json`
    `name` and `baseline` (`POLICY/PREDICTOR`) of the experiment that was computed last, and its
    `provenance`.

`cells/KEY.json`
    `cell`        the cell (`bridge.lab.experiments.cell.Cell`)
    `status`      `done`, or `failed` when it failed as often as was allowed
    `error`       why it failed, in words; null
    `results`     the measures, as an entry of `results` of `schedbridge lab simulate --json`; null
    `machine`     `processors` of the simulated machine, its `name`; null
    `cpu_s`, `wall_s`   what the cell took, s
    `provenance`  where the result comes from (`bridge.lab.experiments.provenance`)
`cells/KEY.npz`
    The columns of the judged jobs (`COLUMNS`): those that ended, in order of submission. Jobs that
    did not end are counted in `results.unfinished`. Only of cells that are `done`.

Files are written under another name and then renamed, the JSON last: a cell whose JSON is there is
whole.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bridge import files, json_text, npz
from bridge.errors import ResultError
from bridge.lab.experiments.cell import Cell

CELLS: Final = "cells"
ABOUT: Final = "experiment.json"
DONE: Final = "done"
FAILED: Final = "failed"
_LARGEST: Final = 1 << 30

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JobColumns:
    """The judged jobs, as columns of length n_jobs, in order of submission.

    Attributes:
        id: int64, unique: the job's number in the trace. Further jobs of the same number (copies of
            a bootstrap) have numbers above all of the trace. The same job has the same number in
            all cells of one trace, seed and perturbation (`Cell.pairing`).
        user: int64; -1: unknown.
        submit_s, start_s, end_s: float64, Unix seconds.
        width: int64, CPUs.
        limit_s: float64: its time limit, s.
        run_s: float64: its run time, s: end - start.
    """

    id: Ints
    user: Ints
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    width: Ints
    limit_s: Floats
    run_s: Floats

    def __len__(self) -> int:
        return len(self.id)


_KINDS: Final[Mapping[Any, type[np.int64] | type[np.float64]]] = {
    Ints: np.int64,
    Floats: np.float64,
}

COLUMNS: Final[Mapping[str, type[np.int64] | type[np.float64]]] = {
    name: _KINDS[array] for name, array in get_type_hints(JobColumns).items()
}
"""The columns of `JobColumns` and the types of their elements."""


@dataclass(frozen=True)
class CellResult:
    """What is kept of a cell; the attributes are the keys of its JSON.

    Attributes:
        status: `DONE` or `FAILED`.
        results: the measures; empty if it failed.
        machine: `name` and `processors` of the simulated machine; empty if it failed.
        cpu_s, wall_s: what it took, s.
        error: why it failed; None.
    """

    cell: Cell
    status: str
    results: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    error: str | None = None

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why its measures are not those of the policy over all jobs, in words."""
        found = []
        if fell_back := int(self.results.get("fell_back") or 0):
            found.append(
                f"the policy failed in {fell_back:,} of {int(self.results['decisions']):,}"
                " decisions, which the conservative plan made"
            )
        if left := int(self.results.get("unfinished") or 0):
            found.append(f"{left:,} jobs did not end")
        return tuple(found)


def cell_path(folder: Path, key: str) -> Path:
    return folder / CELLS / f"{key}.json"


def write_cell(folder: Path, result: CellResult, columns: JobColumns | None = None) -> None:
    """Keeps a result; an earlier one of the same cell is replaced.

    Args:
        folder: the folder of the experiment's results.
        columns: its judged jobs; None: it failed.

    Raises:
        OSError: it cannot be written.
    """
    write_packed(folder, result, None if columns is None else packed(columns))


def packed(columns: JobColumns) -> bytes:
    """The content of the file `.npz`: what a worker sends."""
    held = {name: getattr(columns, name).astype(kind) for name, kind in COLUMNS.items()}
    content = BytesIO()
    np.savez_compressed(content, **held)
    return content.getvalue()


def write_packed(folder: Path, result: CellResult, arrays: bytes | None) -> None:
    """Keeps a result whose columns are packed already; see `write_cell`.

    Raises:
        OSError: it cannot be written.
    """
    path = cell_path(folder, result.cell.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    if arrays is not None:
        _replace(path.with_suffix(".npz"), arrays)
    text = json.dumps({**asdict(result), "cell": result.cell.plain()}, indent=1)
    _replace(path, text.encode() + b"\n")
    if arrays is None:
        path.with_suffix(".npz").unlink(missing_ok=True)


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Writes `experiment.json`.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / ABOUT, json.dumps(about, indent=1).encode() + b"\n")


def read_about(folder: Path) -> Mapping[str, Any]:
    """What the folder says of its experiment; empty if it says nothing that can be read."""
    try:
        found = json_text.load(files.read_bytes(folder / ABOUT))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_cell(path: Path) -> CellResult:
    """Reads the JSON of a cell.

    Raises:
        ResultError: it cannot be read, or is no result of a cell.
    """
    try:
        found = json_text.load(files.read_bytes(path, _LARGEST))
        cell = Cell.of(found.pop("cell"))
        result = CellResult(cell, **found)
    except OSError as error:
        raise ResultError(str(path), f"cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultError(
            str(path), f"is not a result of a cell: {error}; remove it to compute the cell again"
        ) from None
    if result.status not in (DONE, FAILED):
        raise ResultError(str(path), f"status is '{result.status}', not {DONE} or {FAILED}")
    return result


def read_columns(path: Path) -> JobColumns:
    """Reads the judged jobs of a cell.

    Args:
        path: the path of its JSON; the columns are next to it.

    Raises:
        ResultError: they cannot be read, or a column is missing.
    """
    path = path.with_suffix(".npz")
    try:
        return unpacked(files.read_bytes(path, _LARGEST), str(path))
    except OSError as error:
        raise ResultError(str(path), f"cannot be read: {error.strerror or error}") from None


def unpacked(content: bytes, shown: str) -> JobColumns:
    """The inverse of `packed`.

    Args:
        content: the content of a file `.npz`.
        shown: its name, for messages.

    Raises:
        ResultError: a column is missing, or it is damaged.
    """
    try:
        held = npz.read(content, _LARGEST)
        read: dict[str, Any] = {name: held[name].astype(kind) for name, kind in COLUMNS.items()}
    except npz.UNREADABLE as error:
        raise ResultError(
            shown, f"has no columns of jobs: {error}; remove it, and it is computed again"
        ) from None
    if len({len(column) for column in read.values()}) != 1:
        raise ResultError(shown, "has columns of different lengths")
    return JobColumns(**read)


def read_all(
    folder: Path, told: Callable[[ResultError], None] | None = None
) -> list[tuple[CellResult, Path]]:
    """All results of a folder with the paths of their JSON, in order of their names.

    Args:
        folder: the folder of the experiment's results.
        told: called with each file that is no result, which is then left out; None: it is an error.

    Raises:
        ResultError: there is no such folder, or (without `told`) a file in it is no result.
    """
    inner = folder / CELLS
    if not inner.is_dir():
        raise ResultError(str(folder), f"has no results: there is no folder {CELLS} in it")
    found = []
    for path in sorted(inner.glob("*.json")):
        try:
            found.append((read_cell(path), path))
        except ResultError as error:
            if told is None:
                raise
            told(error)
    return found


def _replace(path: Path, content: bytes) -> None:
    """Writes a file as a whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with files.naming(path):
            draft.write_bytes(content)
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
