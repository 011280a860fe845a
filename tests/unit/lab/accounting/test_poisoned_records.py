# SPDX-License-Identifier: Apache-2.0
"""One record that holds anything stops no other: it is left out, named on one line and counted."""

import copy
import json
from pathlib import Path

import pytest

from bridge.errors import TraceError
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.pbs_log import read_pbs_log
from bridge.lab.accounting.reading import read_accounting
from bridge.lab.accounting.sacct_json import read_sacct_json
from bridge.lab.accounting.sacct_table import read_sacct_table
from bridge.lab.accounting.slurm_events import read_events, read_reservations
from bridge.lab.accounting.slurm_system import system_yaml
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import SiteWorkload
from bridge.lab.sim.workloads.records.lowering import simulation_of
from bridge.lab.sim.workloads.records.record_file import read_site_workload, write_site_workload
from bridge.lab.sim.workloads.swf import read_swf, write_swf
from bridge.lab.sim.workloads.system import read_system
from schedbridge_contracts.crosses import WHOLE
from tests.unit.lab.accounting.test_readers import PBS, recorded

VALUES = (
    None, True, -1, -(2**63), 2**53, 2**63, 2**64 - 1, float("nan"), float("inf"), 0.5, "", "x",
    "9" * 5000, "a\n2|b\x1b[2J\udc80", "n[1-999999999]", [], {}, [[]], {"set": True}, ["x"] * 3,
)  # fmt: skip


def leaves(value, path=()):
    """The paths to all parts of a value."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))


def with_part(value, path, part):
    if not path:
        return part
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = part
    return changed


def on_one_line(found):
    return all(line.isprintable() for line in found.messages)


def test_a_job_of_json_that_holds_anything_stops_no_other(tmp_path):
    """Also not the files and the simulation that are made of all."""
    data = json.loads(recorded("sacct-24.11.json"))
    known = read_sacct_json([json.dumps(data).encode()], "f").jobs
    system = tmp_path / "system.yaml"
    system.write_text(
        system_yaml(recorded("nodes-24.11.json"), recorded("partitions-24.11.json"), "c",
                    AccountingRecords(""))
    )  # fmt: skip
    system = read_system(system)
    own = "3"  # the job that is changed
    at = next(n for n, entry in enumerate(data["jobs"]) if entry["job_id"] == int(own))
    others = {key: job for key, job in known.items() if key != own}
    paths = list(leaves(data["jobs"][at]))
    for number, path in enumerate(paths[:: 1 if WHOLE else 5]):
        for value in (*VALUES, VALUES[number % len(VALUES)]):  # the last one is simulated
            jobs = [*data["jobs"]]
            jobs[at] = with_part(jobs[at], path, value)
            found = read_sacct_json([json.dumps({"jobs": jobs}).encode()], "f")
            assert len(found.jobs) + found.faults + found.repeated == len(known), (path, value)
            kept = {key: job for key, job in found.jobs.items() if key in others}
            assert found.repeated or kept == others, (path, value)
            assert on_one_line(found), (path, value)
        site = SiteWorkload("s", list(found.jobs.values()), processors=99)
        for described in (system, None):
            assert len(simulation_of(site, described, 99).workload) >= 7, (path, value)
        swf, records = tmp_path / "a.swf", tmp_path / "a.workload.jsonl"
        trace = as_swf(site)
        write_swf(swf, trace.header, trace.columns)
        write_site_workload(records, site)
        assert len(read_swf(swf).columns) == len(found.jobs), (path, value)
        assert len(read_site_workload(records).jobs) == len(found.jobs), (path, value)


def test_jobs_of_json_that_are_no_values_stop_no_other(monkeypatch):
    """Of too many digits, nested too deep, too long, too large, not UTF-8, wherever pieces end."""
    monkeypatch.setattr("bridge.json_text.MAX_MEMBER_BYTES", 1 << 18)
    jobs = json.loads(recorded("sacct-24.11.json"))["jobs"]
    sound = [json.dumps(job).encode() for job in jobs]
    deep = b'[{"a": ' * 50_000 + b"1" + b"}]" * 50_000
    odd = (
        b'{"job_id": ' + b"9" * 5000 + b', "name": "] \\" \\\\"}',
        b'{"job_id": ' + deep + b"}",
        b'{"name": "' + b'\\\\\\"]}' * 60_000 + b'"}',
        b'{"name": "\xff\xfe\\ud800"}',
        b"[" + b"[]," * 100_000 + b"{}]",
    )
    for entry in odd:
        text = b'{"meta": {}, "jobs": [' + b", ".join([*sound[:5], entry, *sound[5:]]) + b"]}"
        for size in (1 << 16, 4093, 1 << 20):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            found = read_sacct_json(pieces, "f")
            assert (len(found.jobs), found.faults) == (len(jobs), 1), entry[:40]
            assert found.messages[0].startswith("f: job 6: "), entry[:40]
            assert on_one_line(found)


def test_a_line_of_a_table_that_holds_anything_stops_no_other():
    lines = recorded("sacct-24.11.txt").split(b"\n")
    known = read_sacct_table(lines, "t").jobs
    row = next(at for at, line in enumerate(lines) if line.startswith(b"3|"))
    words = lines[row].split(b"|")
    values = [str(value).encode("utf-8", "surrogateescape") for value in VALUES if value != "x"]
    for column in range(len(words)):
        for value in values:
            changed = b"|".join([*words[:column], value, *words[column + 1 :]])
            found = read_sacct_table([*lines[:row], *changed.split(b"\n"), *lines[row + 1 :]], "t")
            assert {k: j for k, j in found.jobs.items() if k in known and k not in ("2", "3")} == {
                k: j for k, j in known.items() if k != "3"
            }, (column, value)
            assert on_one_line(found)


def test_a_line_of_a_log_of_pbs_that_holds_anything_stops_no_other():
    lines = PBS.encode().splitlines()
    known = read_pbs_log(lines, "l")
    for row in range(len(lines)):
        own = lines[row].split(b";")[2:3]
        for part in range(len(lines[row].split(b" "))):
            for value in VALUES:
                words = lines[row].split(b" ")
                key = words[part].partition(b"=")[0]
                words[part] = key + b"=" + str(value).encode("utf-8", "surrogateescape")
                changed = [*lines[:row], *b" ".join(words).split(b"\n"), *lines[row + 1 :]]
                found = read_pbs_log(changed, "l")
                for job_id, job in known.jobs.items():
                    if not own or not own[0].startswith(job_id.split("_")[0].encode()):
                        assert found.jobs.get(job_id) == job, (lines[row], value)
                assert on_one_line(found)


def test_an_event_or_a_reservation_that_holds_anything_stops_no_other():
    outages = (
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason\n{}\nc|n2|2026-11-26T10:00:00||DOWN|x"
    )
    kept = "Name|TimeStart|TimeEnd|NodeNames\n{}\nr2|2026-11-26T10:00:00|2026-11-27T10:00:00|n2"
    for text, read in ((outages, read_events), (kept, read_reservations)):
        columns = len(text.split("\n")[0].split("|"))
        for column in range(columns):
            for value in VALUES:
                words = text.split("\n")[2].split("|")
                words[column] = str(value)
                found = AccountingRecords("")
                read(text.format("|".join(words)), "e", found)
                record = [*found.outages, *found.reservations][-1]
                assert record.nodes == "n2", (column, value)
                assert on_one_line(found)


@pytest.mark.parametrize("kind", ["nodes", "partitions"])
def test_a_node_or_a_partition_that_holds_anything_stops_no_other(kind, tmp_path):
    """Slow: each column is tried with each odd value."""
    files = {each: json.loads(recorded(f"{each}-24.11.json")) for each in ("nodes", "partitions")}
    odd = copy.deepcopy(files[kind][kind][0])
    path = tmp_path / "system.yaml"

    def described(entry):
        given = {**files, kind: {kind: [*files[kind][kind], entry]}}
        found = AccountingRecords("")
        texts = (json.dumps(given[each]).encode() for each in ("nodes", "partitions"))
        path.write_text(system_yaml(*texts, "c", found))
        return read_system(path), found

    _, found = described(odd)
    assert (found.faults, found.messages[0].split(": ", 1)[1]) == (1, "is listed twice")
    odd["name"] = "odd"
    for place in leaves(odd):
        if len(place) > 4:
            continue
        for value in VALUES:
            system, found = described(with_part(odd, place, value))
            names = [part.name for part in system.partitions]
            assert {f"n{at}" for at in range(1, 5)} <= {*system.nodes.names}, (place, value)
            assert {"main", "left"} <= {*names}, (place, value)
            assert on_one_line(found)


def test_a_file_of_a_directory_that_is_something_else_stops_no_other(tmp_path):
    days = tmp_path / "accounting"
    days.mkdir()
    for name, text in (
        ("20261125", b"\0\1\2"), ("20261126", PBS.encode()), ("20261127", b"core dump"),
        ("20261128", recorded("sacct-24.11.json")),
        ("20261129", PBS.encode().replace(b";7.srv", b";77.srv")),
    ):  # fmt: skip
        (days / name).write_bytes(text)
    (days / "20261130").symlink_to(days / "gone")
    found = read_accounting([days])
    assert {"7", "77", "8"} <= found.jobs.keys()
    left_out = [Path(line.split(": ")[0]).name for line in found.messages]
    assert left_out[-3:] == ["20261125", "20261127", "20261128"]
    with pytest.raises(TraceError, match="is neither what sacct"):
        read_accounting([days / "20261127"])
    with pytest.raises(TraceError, match="is a sacct --json, and those before"):
        read_accounting([days, days / "20261128"])
