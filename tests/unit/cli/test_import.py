# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab import` of files, and what it says of wrong input."""

import json
from pathlib import Path

import pytest

from bridge.lab.sim.workloads.records.record_file import read_site_workload
from bridge.lab.sim.workloads.swf import read_swf

RECORDED = Path(__file__).parents[1] / "lab" / "accounting" / "recorded"
JOBS = RECORDED / "sacct-24.11.json"
NODES = ("--nodes", RECORDED / "nodes-24.11.json")
PARTITIONS = ("--partitions", RECORDED / "partitions-24.11.json")


@pytest.fixture
def imported(schedbridge, tmp_path, monkeypatch):
    """Imports into a directory of its own; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: schedbridge("lab", "import", *arguments)


def test_files_become_a_workload_a_system_and_a_trace(imported, schedbridge, tmp_path):
    events = ("--events", RECORDED / "events-24.11.txt")
    code, out, err = imported(JOBS, *NODES, *PARTITIONS, *events, "--swf", "a.swf.gz")
    assert (code, err) == (0, "")
    assert "read by sacct --json" in out
    assert "10 jobs submitted from" in out
    assert "the secret was forgotten" in out
    assert "simulate takes 8 of the jobs" in out
    assert "left out: 1 had not ended" in out
    assert "not honoured: 4 jobs: arrays' limits of tasks at a time" in out
    site = read_site_workload(tmp_path / "site.workload.jsonl.gz")
    assert (len(site.jobs), len(site.outages), site.processors) == (10, 1, 16)
    assert len(read_swf(tmp_path / "a.swf.gz").columns) == 10
    arguments = ["lab", "simulate", "site.workload.jsonl.gz", "--json"]
    code, out, err = schedbridge(*arguments, "--system", "system.yaml", "--out", "out")
    found = json.loads(out)
    assert (code, found["jobs"], found["processors"]) == (0, 8, 16)
    assert found["results"][0]["unfinished"] == 0
    assert found["not_honoured"] == ["4 jobs: arrays' limits of tasks at a time"]
    assert "not honoured: 4 jobs" in err
    assert (tmp_path / "out" / "result-easy.swf").exists()
    pool = json.loads(schedbridge(*arguments, "--procs", 64)[1])
    assert pool["results"][0]["engine"] == "cycle"  # for the dependency
    assert "8 jobs: partitions" in pool["not_honoured"]


def test_nothing_is_replaced_without_being_asked(imported, tmp_path):
    kept = tmp_path / "site.workload.jsonl.gz"
    kept.write_text("precious")
    code, _, err = imported(JOBS)
    assert code == 1
    assert "is there already; give --force to replace it" in err
    assert kept.read_text() == "precious"
    assert imported(JOBS, "--force")[0] == 0
    assert len(read_site_workload(kept).jobs) == 10


def test_names_and_secret(imported, tmp_path):
    assert imported(JOBS, "--out", "a.workload.jsonl", "--keep-names", "--json")[0] == 0
    assert '"user":"alice"' in (tmp_path / "a.workload.jsonl").read_text()
    for name in "bc":
        assert imported(JOBS, "--out", f"{name}.workload.jsonl", "--secret", "s")[0] == 0
    first, again = ((tmp_path / f"{name}.workload.jsonl").read_text() for name in "bc")
    assert first == again
    assert "alice" not in first


def test_the_name_of_a_file_is_no_pseudonym(imported, tmp_path):
    mine = tmp_path / "alice-smith.json"
    mine.write_bytes(JOBS.read_bytes())
    for words, name in (((), "site"), (("--keep-names",), "alice-smith"), (("--name", "x"), "x")):
        assert imported(mine, *words, "--out", "a.workload.jsonl", "--force")[0] == 0
        assert read_site_workload(tmp_path / "a.workload.jsonl").name == name


def test_a_log_of_pbs_states_what_was_in_use(imported, tmp_path):
    line = (
        "11/26/2026 10:00:00;E;{0}.s;user=u queue=q qtime={1} start={1} end={2}"
        " Resource_List.ncpus=4 Resource_List.walltime=01:00:00 resources_used.walltime=00:10:00\n"
    )
    logs = tmp_path / "accounting"
    logs.mkdir()
    (logs / "20261126").write_text(line.format(1, 1795680000, 1795680600) + "odd\n")
    (logs / "20261127").write_text(line.format(2, 1795680500, 1795681100))
    code, out, _ = imported(logs)
    assert code == 0
    assert "processors: 8, the most in use at a time" in out
    assert "1 entries cannot be read and are left out; the first:" in out
    assert "20261126:2: is not a line of an accounting log" in out
    found = json.loads(imported(logs, "--force", "--since", "1795680400", "--json")[1])
    assert (found["jobs"], found["processors"], found["simulated_jobs"]) == (1, 4, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.json"], "none.json: cannot be read: No such file"),
        (["EMPTY"], "EMPTY: the directory has no files"),
        (["SWF"], "SWF: is neither what sacct --json or --parsable2 prints, nor a PBS"),
        (["HTML"], "is HTML or XML"),
        (
            ["CSV"],
            "CSV: is a table of sacct as CSV, which is not read: let sacct print it",
        ),
        (["WIDE"], "WIDE: is a table of sacct in columns of fixed width"),
        (["CUT"], "is not JSON, or cut off"),
        (["NOTHING"], "no jobs were found; the first entry that cannot be read: NOTHING: job 1"),
        ([JOBS, "HEAD"], "is a sacct --parsable2, and those before it are a sacct --json"),
        ([JOBS, "--out", "a.json"], "a.json must contain .workload.jsonl"),
        ([JOBS, "--reader", "json"], "files are read as what they are"),
        (["--reader", "oracle"], "there is no 'oracle'; there are pyslurm, json, table"),
        ([JOBS, "--keep-names", "--secret", "s"], "names are kept: leave out one"),
        ([JOBS, "--nodes", JOBS], "give --nodes and --partitions, or neither"),
        ([JOBS, *NODES, "--partitions", "HTML", "--out", "/proc/x.workload.jsonl"], "cannot write"),
        ([JOBS, "--nodes", "HTML", *PARTITIONS], "there is no node in it"),
        (["--events", "SWF"], "belongs to accounting files"),
        ([JOBS, "--since", "soon"], "'soon' is not a time such as 2026-11-26T10:00 or 30d"),
        ([JOBS, "--since", "1d", "--until", "2d"], "is not before --until"),
        ([JOBS, "--since", "1d"], "no jobs were found"),
        ([], "sacct: is not there: import on a machine with Slurm's commands, or give files"),
    ],
)
def test_mistakes_get_one_line(imported, tmp_path, monkeypatch, arguments, says):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bridge.cli.simulation.importing.time.time", lambda: 1_900_000_000.0)
    for name, text in (
        ("SWF", "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1\n"),
        ("HTML", "<html>"),
        ("CUT", '{"jobs": [{"job_id": 3'),
        ("NOTHING", '{"jobs": [{"job_id": 3}]}'),
        ("HEAD", "JobID|Submit\n"),
        ("CSV", '"JobID","User","Submit"\r\n'),
        ("WIDE", "JobID           JobName  Partition\n------------ ---------- ----------\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "EMPTY").mkdir()
    code, _, err = imported(*arguments)
    assert code == 1
    assert says in err
    assert err.count("\n") == 1
