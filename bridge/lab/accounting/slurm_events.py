# SPDX-License-Identifier: Apache-2.0
"""Reads outages and reservations as `sacctmgr show event|reservation --parsable2` prints them.

Rules
    1. An event without a node is one of the cluster, and is skipped. States with DOWN, FAIL or
       REBOOT lose jobs; DRAIN, MAINT and others drain.
    2. A line that cannot be read is counted and named.
"""

from collections.abc import Mapping

from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.slurm_words import instant_s, is_unknown
from bridge.lab.sim.workloads.records.job_record import Outage, ReservationRecord

_LOST = ("DOWN", "FAIL", "REBOOT", "POWERED_DOWN", "NOT_RESPONDING")


def read_events(text: str, where: str, into: AccountingRecords) -> None:
    """Reads events into the outages of `into`."""
    for number, row in _rows(text):
        if row.get("NodeName"):
            into.take(f"{where}:{number}", into.add_outage, _outage, row)


def read_reservations(text: str, where: str, into: AccountingRecords) -> None:
    """Reads reservations into those of `into`."""
    for number, row in _rows(text):
        into.take(f"{where}:{number}", into.add_reservation, _reservation, row)


def _outage(row: Mapping[str, str]) -> Outage:
    state = "down" if any(w in row.get("State", "").upper() for w in _LOST) else "drained"
    start_s, end_s = instant_s(row["TimeStart"]), instant_s(row.get("TimeEnd", ""))
    outage = Outage(row["NodeName"], start_s, end_s, state, row.get("Reason", "")[:200])
    return Outage.of(outage.plain())


def _reservation(row: Mapping[str, str]) -> ReservationRecord:
    nodes = row.get("NodeNames", "")
    return ReservationRecord.of(
        {
            "name": row["Name"],
            "start_s": instant_s(row["TimeStart"]),
            "end_s": instant_s(row["TimeEnd"]),
            "nodes": "" if is_unknown(nodes) else nodes,
            "flags": row.get("Flags", ""),
        }
    )


def _rows(text: str) -> list[tuple[int, dict[str, str]]]:
    lines = text.split("\n")  # not where a reason has other line ends
    if not lines:
        return []
    names = lines[0].rstrip("\r").split("|")
    alias = {"Start": "TimeStart", "End": "TimeEnd"}
    names = [alias.get(name, name) for name in names]
    return [
        (number, dict(zip(names, line.rstrip("\r").split("|"), strict=False)))
        for number, line in enumerate(lines[1:], 2)
        if line.strip()
    ]
