# SPDX-License-Identifier: Apache-2.0
"""Small files that become large in memory are refused with one clear line, before they do.

Takes up to 20 s, because allocations are counted one by one.
"""

import ast
import bz2
import gzip
import io
import json
import lzma
import re
import subprocess
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bridge import files, json_text, npz, yaml_text
from bridge.errors import BridgeError, RecordingError, TraceError
from bridge.lab.accounting import reading
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.slurm_system import system_yaml
from bridge.lab.experiments.results import read_cell
from bridge.lab.sim.workloads.records.record_file import read_site_workload
from bridge.lab.sim.workloads.swf import read_swf
from bridge.ports import Promises, State
from bridge.recording import recordings
from bridge.recording.recordings import Recording, decode, encode, read_recording
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_snapshot

ROOT = Path(__file__).parents[2]
MIB = files.MIB
TEXT_B = 2 * MIB


@pytest.fixture(autouse=True)
def bounds(monkeypatch):
    """Bounds a sixteenth of the true ones, because counting allocations takes its time."""
    monkeypatch.setattr(recordings, "MAX_MEMORY_BYTES", 32 * MIB)
    monkeypatch.setattr(json_text, "MAX_MEMORY_BYTES", 32 * MIB)


@pytest.fixture
def machine(monkeypatch):
    """Gives the machine so many bytes of memory, and histories so many at least."""

    def of(physical_bytes, min_bytes):
        monkeypatch.setattr(files, "physical_bytes", lambda: physical_bytes)
        monkeypatch.setattr(files, "HISTORY_MIN_BYTES", min_bytes)

    return of


MEND = ": split it into shorter spans of time, or use a machine with more memory"


def peak_of(call):
    """What a call raised, and the most memory that it held."""
    tracemalloc.start()
    try:
        call()
    except (BridgeError, ValueError, OSError) as error:
        return error, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return None, 0


def filled(unit, length=TEXT_B):
    return unit * (length // len(unit))


def a_recording():
    snapshot = a_snapshot(nodes=3, jobs=[a_job(), a_job()])()
    spec = parse_policy("easy")
    plan = Decider(build(spec)).decide(snapshot)
    return Recording(snapshot, State(Promises("easy", {}), {}), spec, 1, plan)


def test_a_recording_of_32_kb(monkeypatch):
    monkeypatch.undo()
    text = b'{"format": "schedbridge cycle", "version": 2, "x": [' + filled(b"[],", 32 * MIB)
    raw = gzip.compress(text + b"0]}")
    assert len(raw) < 34_000
    error, held = peak_of(lambda: decode(raw, "a.gz"))
    assert str(error) == "a.gz: cannot be read: Needs more than 512 MiB of memory"
    assert held < 100 * MIB


@pytest.mark.parametrize("unit", [b"[],", b"{},", b'"",', b"0,", b'{"a":[]},'])
def test_a_recording_of_many_small_values(unit):
    text = b'{"format": "schedbridge cycle", "version": 2, "x": [' + filled(unit) + b"0]}"
    raw = gzip.compress(text)
    error, held = peak_of(lambda: decode(raw, "a.gz"))
    assert isinstance(error, RecordingError)
    assert str(error) == "a.gz: cannot be read: Needs more than 32 MiB of memory"
    assert held < 4 * TEXT_B


def test_columns_of_a_recording_that_only_state_their_length(tmp_path):
    plain = json.loads(gzip.decompress(encode(a_recording())))
    jobs = plain["snapshot"]["jobs"]
    for name, value in jobs.items():
        if isinstance(value, dict) and "all" in value:
            jobs[name] = {"shape": [3_000_000], "all": value["all"]}
    path = tmp_path / "a.cycle.json.gz"
    path.write_bytes(gzip.compress(json.dumps(plain).encode()))
    assert path.stat().st_size < 32_000
    error, held = peak_of(lambda: read_recording(path))
    assert str(error) == f"{path}: cannot be read: Needs more than 32 MiB of memory"
    assert held < 36 * MIB


def test_a_recording_is_stopped_while_it_is_unpacked():
    raw = gzip.compress(filled(b" ", 100 * MIB), 1)
    error, held = peak_of(lambda: decode(raw, "a.gz"))
    assert "Needs more than 32 MiB" in str(error)
    assert held < 40 * MIB


JOB = '{{"kind":"job","id":"{}","submit_s":5}}\n'
HEAD = '{"format":"schedbridge-workload","version":1,"name":"s","processors":8,"about":{}}\n'


@pytest.mark.parametrize(
    ("physical_gib", "history_gib"), [(0, 4), (2, 4), (8, 4), (16, 8), (256, 128)]
)
def test_histories_may_need_half_of_the_machines_memory(monkeypatch, physical_gib, history_gib):
    monkeypatch.setattr(files, "physical_bytes", lambda: physical_gib << 30)
    assert files.history_bytes() == files.history_budget().limit == history_gib << 30


def test_the_same_histories_are_read_on_a_larger_machine(tmp_path, machine):
    site, trace, table = (tmp_path / name for name in ("s.workload.jsonl", "t.swf", "sacct.txt"))
    site.write_text(HEAD + "".join(JOB.format(i) for i in range(3000)))
    trace.write_text("".join(f"{i} {'1 ' * 17}\n" for i in range(1, 9000)))
    table.write_text(TABLE + "".join(f"{n}|2026-11-26T10:00:00|u\n" for n in range(5000)))
    for path, read, count in (
        (site, lambda: read_site_workload(site).jobs, 3000),
        (trace, lambda: read_swf(trace).columns, 8999),
        (table, lambda: reading.read_accounting([table]).jobs, 5000),
    ):
        machine(2 * MIB, MIB)
        what = f"{path}: cannot be read: Needs more than 1 MiB of memory{MEND}"
        with pytest.raises(TraceError, match=f"^{re.escape(what)}$"):
            read()
        machine(64 * MIB, MIB)
        assert len(read()) == count


def test_a_site_workload_holds_its_records_and_no_text(tmp_path, machine):
    machine(0, MIB)
    path = tmp_path / "s.workload.jsonl.gz"
    few, many = 200, 3000
    path.write_bytes(gzip.compress((HEAD + "".join(JOB.format(i) for i in range(few))).encode()))
    assert len(read_site_workload(path).jobs) == few
    path.write_bytes(gzip.compress((HEAD + "".join(JOB.format(i) for i in range(many))).encode()))
    error, held = peak_of(lambda: read_site_workload(path))
    assert str(error) == f"{path}: cannot be read: Needs more than 1 MiB of memory{MEND}"
    assert held < 4 * MIB


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("read", [read_site_workload, read_swf])
def test_blank_lines_need_no_memory(tmp_path, pack, read):
    path = tmp_path / "s.workload.jsonl"
    path.write_bytes(pack(HEAD.encode() + filled(b"\n")))
    assert path.stat().st_size < 64_000
    error, held = peak_of(lambda: read(path))
    assert isinstance(error, TraceError)
    assert held < 16 * MIB


def test_a_line_without_an_end(tmp_path):
    path = tmp_path / "t.swf"
    path.write_bytes(gzip.compress(filled(b"1 ")))
    error, held = peak_of(lambda: read_swf(path))
    assert str(error) == f"{path}: cannot be read: Has a line longer than 1 MiB"
    assert held < 16 * MIB


@pytest.mark.parametrize("line", [b"1 " * 18 + b"\n", b"; a\n", b"1 2\n", b"1 " * 40 + b"\n"])
def test_a_trace_holds_its_jobs_and_no_text(tmp_path, machine, line):
    machine(0, 2 * MIB)
    path = tmp_path / "t.swf"
    path.write_bytes(bz2.compress(b"1 " * len(line.split()) + b"\n" + filled(line)))
    assert path.stat().st_size < 32_000
    error, held = peak_of(lambda: read_swf(path, lenient=True))
    assert str(error) == f"{path}: cannot be read: Needs more than 2 MiB of memory{MEND}"
    assert held < 20 * MIB


def test_fields_of_a_trace_are_counted_before_the_next_line_is_split(tmp_path, machine):
    """Slow: every allocation is traced."""
    machine(0, 4 * MIB)
    path = tmp_path / "t.swf"
    line = b"1 " * 18 + b"ab " * (MIB // 24) + b"\n"
    path.write_bytes(bz2.compress(line * 24))
    error, held = peak_of(lambda: read_swf(path))
    assert str(error) == f"{path}: cannot be read: Needs more than 4 MiB of memory{MEND}"
    assert held < 16 * MIB


ENTRY = '{"job_id": %d, "time": {"submission": 5}, "pad": "%s"}'


def test_accounting_as_json_is_read_job_by_job(tmp_path):
    path = tmp_path / "sacct.json"
    jobs = ",".join(ENTRY % (n, "[],{}" * 2000) for n in range(1, 300))
    path.write_bytes(gzip.compress(f'{{"meta": {{}}, "jobs": [{jobs}], "errors": []}}'.encode()))
    read = []
    error, _ = peak_of(lambda: read.append(reading.read_accounting([path])))
    assert error is None
    assert sorted(map(int, read[0].jobs)) == list(range(1, 300))


@pytest.mark.parametrize("unit", ["[],", '{"a":{}},'])
def test_accounting_of_one_job_that_holds_all(tmp_path, monkeypatch, unit):
    """It is left out; those before and after it are read."""
    monkeypatch.setattr(json_text, "MAX_MEMORY_BYTES", 4 * MIB)
    path = tmp_path / "sacct.json"
    large = '{"job_id": 1, "x": [' + filled(unit, TEXT_B // 8) + "0]}"
    text = f'{{"jobs": [{ENTRY % (2, "")}, {large}, {ENTRY % (3, "")}]}}'
    path.write_bytes(gzip.compress(text.encode()))
    read = []
    error, held = peak_of(lambda: read.append(reading.read_accounting([path])))
    assert error is None
    assert read[0].jobs.keys() == {"2", "3"}
    assert read[0].messages == [f"{path}: job 2: needs more than 4 MiB of memory"]
    assert held < json_text.MAX_MEMORY_BYTES


PBS = "11/26/2026 10:00:00;{};{}.s;user=u ctime=5 qtime=5 {}\n"
TABLE = "JobID|Submit|User\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(PBS.format("Q", n, " ".join(f"k{i}=" for i in range(20))) for n in range(3000)),
        TABLE + "".join(f"{n}|2026-11-26T10:00:00|u\n" for n in range(5000)),
        '{"jobs": [' + ",".join(ENTRY % (n, "") for n in range(1, 5000)) + "]}",
        "".join(f"11/26/2026 10:00:00;B;R{n}.s;start=5 end=6\n" for n in range(5000)),
    ],
    ids=["PBS", "table", "JSON", "reservations"],
)
def test_accounting_is_counted_by_its_records(tmp_path, machine, text):
    machine(0, MIB)
    path = tmp_path / "accounting"
    path.write_bytes(bz2.compress(text.encode()))
    error, held = peak_of(lambda: reading.read_accounting([path]))
    assert str(error) == f"{path}: cannot be read: Needs more than 1 MiB of memory{MEND}"
    assert held < 16 * MIB


@pytest.mark.parametrize(
    "line", [b"NodeName=\n", b"NodeName=a CPUTot=1\n", b"\n", b"NodeName=a b=1 "]
)
def test_nodes_as_text_are_counted_by_what_is_held(line):
    found = AccountingRecords("test", budget=files.MemoryBudget(MIB // 16))
    text = filled(line, MIB // 4)
    error, held = peak_of(lambda: system_yaml(text, b"", "s", found))
    assert isinstance(error, ValueError)
    assert held < 2 * MIB


@pytest.mark.parametrize("unit", ["[],", "{},", "a,", "&b [],"])
def test_yaml_is_counted_before_its_nodes_are_made(monkeypatch, unit):
    monkeypatch.setattr(yaml_text, "MAX_VALUES", 1000)
    error, held = peak_of(lambda: yaml_text.load(f"[{unit * 20_000}a]"))
    assert "more than 1000 values" in str(error)
    assert held < MIB


def test_arrays_are_as_long_as_the_file_says():
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as packed, packed.open("lie.npy", "w") as to:
        header = {"descr": "<f8", "fortran_order": False, "shape": (40_000_000,)}
        np.lib.format.write_array_header_1_0(to, header)
    error, held = peak_of(lambda: npz.read(raw.getvalue(), 1 << 30))
    assert "shorter than its header states" in str(error)
    assert held < MIB
    raw = io.BytesIO()
    np.savez_compressed(raw, a=np.zeros(TEXT_B, np.int8), b=np.zeros(TEXT_B, np.int8))
    error, held = peak_of(lambda: npz.read(raw.getvalue(), TEXT_B))
    assert "Needs more than 2 MiB" in str(error)
    assert held < MIB


def test_a_result_of_many_small_values(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"cell": [' + filled(b"[],") + b"0]}")
    error, held = peak_of(lambda: read_cell(path))
    assert str(error) == f"{path}: cannot be read: Needs more than 32 MiB of memory"
    assert held < 20 * MIB  # files are read in pieces of 16 MiB


def test_the_bound_on_values_holds():
    for unit in ("[],", "{},", "0,", "12345,", '"ab",', "1.5,", '{"a":{}},', '"\U0001f600b",'):
        text = ("[" + unit * 20_000 + "0]").encode()
        tracemalloc.start()
        value = json.loads(text)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held <= json_text.needed_bytes(text), unit
        assert len(value) > 1


# ------------------------------------------------------------------------ every reader

OWN = {
    "extensions/sharing/on_nodes/record.py": "1 MiB of the agent's own state",
    "cli/experiments/rerun.py": "a text in a result, counted with it; what a child prints",
    "cli/experiments/running.py": "a text in a cell of this run",
    "extensions/elastic/launcher/options.py": "the launcher's own file",
    "extensions/elastic/launcher/record.py": "the launcher's own file",
    "extensions/elastic/lines.py": "lines are bounded; the package imports Python's library only",
    "extensions/elastic/link.py": "lines are bounded; the package imports Python's library only",
    "lab/experiments/page/page.py": "a text in a result, counted with it",
    "lab/experiments/statistics/reading.py": "texts in a result, counted with it",
    "json_text.py": "counts before it reads",
    "service/config_changes.py": "what the service itself kept of its configuration",
    "pbs/ifl/qstat_json.py": "what PBS's own commands print",
    "pbs/link/settings.py": "settings of a child",
    "extensions/power/corridor/entry_log.py": "the service's own state",
    "extensions/power/operators/event_page.py": "what the service's own process sends",
    "extensions/power/operators/power_changes.py": "what the service's own process sends",
    "rpc/operators/program.py": "settings of a child",
    "lab/sim/workloads/esp.py": "a file of the package",
    "state/memory_writer.py": "the service's own state",
    "state/predictor_store.py": "the service's own state",
}
"""Files that read JSON in other ways, and why they may."""


def test_json_of_others_is_read_in_one_way():
    listed = subprocess.run(
        ["git", "ls-files", "bridge"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    others = set()
    for line in listed.stdout.splitlines():
        if line.endswith(".py") and (ROOT / line).exists():
            for node in ast.walk(ast.parse((ROOT / line).read_text())):
                match node:
                    case ast.Attribute(value=ast.Name(id="json"), attr="load" | "loads"):
                        others.add(line.removeprefix("bridge/"))
                    case ast.Attribute(value=ast.Name(id="np"), attr="load"):
                        assert line == "bridge/npz.py", line
    assert others | {"json_text.py"} == set(OWN)
