# SPDX-License-Identifier: Apache-2.0
"""Reads accounting files, by what is in them: sacct as JSON or as a table, or logs of PBS.

Files may be packed (`bridge.lab.sim.workloads.packed_text`). A file that stops early is read up to
there, and counted as a fault. So is one of a directory that cannot be read, or is something else:
the others are read.
"""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bridge.errors import TraceError
from bridge.files import MIB, history_bytes
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.pbs_log import is_pbs_log, read_pbs_log
from bridge.lab.accounting.sacct_json import read_sacct_json
from bridge.lab.accounting.sacct_table import read_sacct_table
from bridge.lab.sim.workloads.packed_text import PackedText, foreign

LONGEST_LINE: Final = 4 * MIB
_MEND: Final = "let sacct print it with --parsable2 (fields separated by |), or with --json"


def read_accounting(paths: Sequence[Path]) -> AccountingRecords:
    """Reads files, and the files of directories in order of their names, together.

    Raises:
        TraceError: a file that is named, or all of a directory, cannot be read or are none of the
            formats; or the records would need too much memory.
    """
    found: AccountingRecords | None = None
    left_out: list[TraceError] = []
    for path, is_named in (one for given in paths for one in _members(given)):
        try:
            found = _joined(found, path)
        except _TooMuch as error:
            raise TraceError(str(path), None, str(error)) from None
        except TraceError as error:
            if is_named:
                raise
            left_out.append(error)
    if found is None:
        nothing = TraceError(str(paths[0]), None, "the directory has no files")
        raise left_out[0] if left_out else nothing
    for each in left_out:
        found.fault(each.path, each.problem)
    return found


class _TooMuch(Exception):
    """The records need more memory than there may be, whichever file is left out."""


def _joined(found: AccountingRecords | None, path: Path) -> AccountingRecords:
    """The records of the files before, with those of one more."""
    try:
        one = _read(path)
        if found is None:
            return one
        if found.reader != one.reader:
            problem = f"is a {one.reader}, and those before it are a {found.reader}"
            raise TraceError(str(path), None, problem)
        found.join(one)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise (
            _TooMuch(what) if error.errno == errno.EFBIG else TraceError(str(path), None, what)
        ) from None
    return found


def _members(path: Path) -> list[tuple[Path, bool]]:
    """The files of a directory, or the path; and whether it was named."""
    if not path.is_dir():
        return [(path, True)]
    return [(each, False) for each in sorted(path.iterdir()) if each.is_file()]


def _unknown(text: bytes) -> str:
    """What a file is, if it is sacct's in another form."""
    head = text.lstrip().split(b"\n", 1)[0]
    for separator, form in ((b",", "CSV"), (b";", "CSV with semicolons"), (b"\t", "tabs")):
        if {b"JobID", b"Submit"} & {word.strip(b'" \r') for word in head.split(separator)}:
            return f"is a table of sacct as {form}, which is not read: {_MEND}"
    if b"JobID" in head.split():
        return f"is a table of sacct in columns of fixed width, which are cut off: {_MEND}"
    return "is neither what sacct --json or --parsable2 prints, nor a PBS accounting log"


def _read(path: Path) -> AccountingRecords:
    shown = str(path)
    with PackedText(path, history_bytes()) as packed:
        if (what := foreign(packed.head)) is not None:
            raise TraceError(shown, None, what)
        try:
            found = _found(packed, shown)
        except ValueError as error:
            hint = f" ({packed.fault})" if packed.fault else ""
            raise TraceError(shown, None, f"{error}{hint}") from None
    if packed.fault is not None:
        found.fault(shown, f"{packed.fault}: {packed.remedy}")
    return found


def _found(packed: PackedText, shown: str) -> AccountingRecords:
    head = packed.head
    if head.lstrip()[:1] == b"{":
        return read_sacct_json(packed.pieces(), shown)
    if is_pbs_log(head):
        return read_pbs_log(packed.lines(LONGEST_LINE), shown)
    if b"|" in head.lstrip().split(b"\n", 1)[0]:
        return read_sacct_table(packed.lines(LONGEST_LINE), shown)
    raise ValueError(_unknown(head))
