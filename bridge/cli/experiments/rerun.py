# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab rerun`: repeats a result, and says whether it came out the same.

A result is the JSON of a cell (`RESULTS/cells/KEY.json`), or the output of `lab simulate
--json` or its `results.json`, which is repeated with the same words.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bridge import files, json_text
from bridge.cli.experiments.running import Order, compute
from bridge.errors import ConfigError, ResultError
from bridge.interpreter import python
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.provenance import commit, provenance, sha256_of, version
from bridge.lab.experiments.rerun import Difference, differences, differing_jobs
from bridge.lab.experiments.results import read_cell, read_columns, unpacked
from bridge.registry import budgets_ms, parse_policy

_MAX_BYTES: Final = 512 * files.MIB
_MAX_SHOWN: Final = 20
_KEYS: Final = ("results", "left_out", "jobs", "processors", "policies")
"""Of the JSON of `simulate`: what must come out again."""


def rerun(
    result: Annotated[
        Path, typer.Argument(help="JSON of a cell, or of schedbridge lab simulate --json.")
    ],
    *,
    trace: Annotated[
        Path | None, typer.Option(help="The trace, if it has moved; its content must be unchanged.")
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Repeat a result and compare; exit code 1 if it came out different."""
    value = _read(result)
    if "cell" in value:
        found, notes = _cell(result, trace)
    else:
        found, notes = _simulation(result, value, trace)
    origin = value.get("provenance", {})
    notes = [*_changes(origin), *notes]
    if json_output:
        told = {
            "file": str(result),
            "same": not found,
            "differences": [vars(each) for each in found],
            "notes": notes,
            "provenance": provenance(("lab", "rerun", str(result))),
        }
        print(json.dumps(told))
    else:
        _show(result, origin, found, notes)
    if found:
        raise typer.Exit(1)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json_text.load(files.read_bytes(path, _MAX_BYTES))
    except OSError as error:
        raise ResultError(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ResultError(str(path), f"is not JSON: {error}") from None
    if isinstance(value, dict) and ("cell" in value or "provenance" in value):
        return value
    raise ResultError(
        str(path),
        "does not say where it comes from (no 'provenance'): give the JSON of a cell, or of"
        " schedbridge lab simulate --json",
    )


def _cell(path: Path, trace: Path | None) -> tuple[list[Difference], list[str]]:
    """Differences of a cell, and what to know about them."""
    kept = read_cell(path)
    cell = kept.cell
    if not kept.done:
        raise ResultError(str(path), f"the cell failed, there is nothing to compare: {kept.error}")
    if trace is not None:
        cell = replace(cell, trace_path=str(trace.absolute()))
    again, arrays = compute(Order(cell))
    if arrays is None:
        raise ResultError(str(path), f"cannot be repeated: {again.error}")
    found = list(differences(kept.results, again.results))
    if path.with_suffix(".npz").exists():
        found += differing_jobs(read_columns(path), unpacked(arrays, str(path)))
    return found, _budgets(cell)


def _budgets(cell: Cell) -> list[str]:
    budgets = budgets_ms(parse_policy(json.loads(cell.policy_text)))
    if not budgets:
        return []
    words = ", ".join(f"{stage} {budget:g} ms" for stage, budget in budgets.items())
    return [f"the policy has time budgets ({words}): at another load it may decide differently"]


def _simulation(
    path: Path, value: Mapping[str, Any], trace: Path | None
) -> tuple[list[Difference], list[str]]:
    """Differences of a simulation that is repeated with the same words."""
    arguments = [str(word) for word in value["provenance"].get("arguments", ())]
    if arguments[:1] == ["simulate"]:  # kept before the commands of the laboratory had a word
        arguments = ["lab", *arguments]
    if arguments[:2] != ["lab", "simulate"]:
        raise ResultError(
            str(path), f"is not a result of simulate: {' '.join(arguments) or 'unknown'}"
        )
    arguments = _without(arguments, "--out")
    given = str(value.get("trace", ""))
    if trace is not None:
        arguments = [str(trace) if word == given else word for word in arguments]
        given = str(trace)
    _need_same(given, value.get("trace_sha256"), path)
    arguments = [word for word in arguments if word != "--json"]
    done = subprocess.run(
        python("-m", "bridge.cli.main", *arguments, "--json"),
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ResultError(str(path), f"cannot be repeated: exit code {done.returncode}, see above")
    again = json.loads(done.stdout)
    before, after = ({key: each.get(key) for key in _KEYS} for each in (value, again))
    return list(differences(before, after)), []


def _need_same(trace: str, sha256: object, path: Path) -> None:
    """The trace must be what it was.

    Raises:
        ResultError: it is another one.
        ConfigError: it cannot be read.
    """
    if not isinstance(sha256, str) or not sha256:
        return
    try:
        found = sha256_of(trace)
    except OSError as error:
        raise ConfigError(
            "trace", f"{trace} cannot be read: {error.strerror}; --trace says where it is now"
        ) from None
    if found != sha256:
        raise ResultError(str(path), f"{trace} is not the trace of this result: it has changed")


def _without(arguments: Sequence[str], option: str) -> list[str]:
    """The words without an option and its value."""
    kept: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word == option:
            skip = True
        elif not word.startswith(f"{option}="):
            kept.append(word)
    return kept


def _changes(origin: Mapping[str, Any]) -> list[str]:
    """What differs between then and now."""
    now = {"version": version(), "commit": commit()}
    return [
        f"{name} was {origin[name]}, now {value}"
        for name, value in now.items()
        if origin.get(name) not in (None, value)
    ]


def _show(
    path: Path, origin: Mapping[str, Any], found: Sequence[Difference], notes: Sequence[str]
) -> None:
    print(f"{path}: of {origin.get('date', 'unknown date')}, {origin.get('command', '')}".rstrip())
    for note in notes:
        print(f"  note: {note}")
    if not found:
        print("  it came out the same")
        return
    print(f"  it did not come out the same: {len(found):,} values differ")
    for each in found[:_MAX_SHOWN]:
        print(f"    {each}")
    if len(found) > _MAX_SHOWN:
        print(f"    and {len(found) - _MAX_SHOWN:,} more (--json has them all)")
