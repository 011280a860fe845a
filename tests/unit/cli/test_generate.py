# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab generate`: files that `simulate` reads, and what wrong input gets."""

import json
from importlib.resources import files

import pytest

from bridge.lab.sim.workloads.records.record_file import read_site_workload

EXCERPT = str(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))


@pytest.fixture
def generate(schedbridge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: schedbridge("lab", "generate", *arguments)


def test_a_model_becomes_a_trace(generate, schedbridge, tmp_path):
    arguments = ("lublin", "--jobs", 300, "--procs", 64, "--load", 0.7, "--seed", 3)
    code, out, err = generate(*arguments, "--out", "a.swf.gz")
    assert (code, err) == (0, "")
    assert "300 jobs on 64 processors, load 0.700; written: a.swf.gz" in out
    generate(*arguments, "--out", "b.swf.gz")
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    found = json.loads(schedbridge("lab", "simulate", "a.swf.gz", "--json")[1])
    assert (found["jobs"], found["processors"], found["left_out"]) == (300, 64, {})


def test_a_fitted_model_is_compared_with_what_was_given(generate, schedbridge, tmp_path):
    code, out, err = generate(EXCERPT, "--weeks", 1, "--load", 0.6, "--out", "a.workload.jsonl")
    assert (code, err) == (0, "")
    assert "run time, s" in out
    assert "drawn" in out
    site = read_site_workload(tmp_path / "a.workload.jsonl")
    assert site.processors == 100
    assert site.about["generator"] == "sessions fitted to KTH-SP2-1996-excerpt.swf.gz"
    code, out, _ = generate("a.workload.jsonl", "--out", "b.swf", "--json", "--seed", 2)
    assert code == 0
    assert len(json.loads(out)["quantiles"]["processors"]["given"]) == 7
    assert schedbridge("lab", "simulate", "b.swf", "--json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lublin", "--out", "a.csv"], "a.csv must end in .swf[.gz] or .workload.jsonl[.gz]"),
        (["lublin", "--out", "kept.swf"], "is there already; give --force"),
        (["lublin", "--out", "a.swf", "--load", "0"], "is a share of the machine"),
        (["lublin", "--out", "a.swf", "--load", "nan"], "is a share of the machine"),
        (["lublin", "--out", "a.swf", "--weeks", "3"], "give --jobs"),
        (["lublin", "--out", "a.swf", "--whole-days"], "has no recorded days"),
        (["lublin", "--out", "a.swf", "--procs", "4"], "8 processors and more, not 4"),
        (["lublin", "--out", "a.swf", "--jobs", "99999999999"], "at most 10,000,000"),
        (["lublin", "--out", "a.swf", "--memory", "9:3"], "'9:3' is not of the form 500:4000"),
        (["lublin", "--out", "a.swf", "--gpus", "10:4"], "needs --node-cpus, and a --out with"),
        (
            ["lublin", "--out", "a.workload.jsonl", "--node-cpus", 8, "--gpus", "101:4"],
            "'101:4' is not of the form 20:4",
        ),
        (["none.swf", "--out", "a.swf"], "none.swf: cannot be read"),
        (["idle.swf", "--out", "a.swf"], "idle.swf: has no job that ran: there is nothing to fit"),
        ([EXCERPT, "--out", "a.swf", "--jobs", 5], "a fitted model draws weeks: give --weeks"),
        ([EXCERPT, "--out", "a.swf", "--weeks", "nan"], "must be an hour"),
        ([EXCERPT, "--out", "/proc/none/a.swf"], "cannot write"),
    ],
)
def test_mistakes_get_one_line(generate, tmp_path, arguments, says):
    (tmp_path / "kept.swf").write_text("precious")
    (tmp_path / "idle.swf").write_text(f"; MaxProcs: 4\n1 0{' -1' * 16}\n")
    code, _, err = generate(*arguments)
    assert code == 1
    assert says in err
    assert err.count("\n") == 1
    assert (tmp_path / "kept.swf").read_text() == "precious"
