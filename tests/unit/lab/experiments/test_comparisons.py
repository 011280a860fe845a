# SPDX-License-Identifier: Apache-2.0
"""From a folder of results to findings, page, tables and words."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from bridge.cli.experiments.report import report
from bridge.cli.main import main
from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.page import table
from bridge.lab.experiments.page.busiest import busiest_stretch, gantt
from bridge.lab.experiments.page.heat import colour
from bridge.lab.experiments.page.page import write_page
from bridge.lab.experiments.page.plain import plain
from bridge.lab.experiments.results import DONE, FAILED, CellResult, write_cell
from bridge.lab.experiments.statistics.compare import Over, compare
from bridge.lab.experiments.statistics.jobs import Trim
from bridge.lab.experiments.statistics.quantities import BY_NAME, OF_JOBS, OF_RUNS
from bridge.lab.experiments.statistics.reading import Contestant, read_bench
from tests.experiment_results import PROCESSORS, a_cell, made_columns, write_made
from tests.unit.lab.experiments.test_statistics import some_jobs

EASY = Contestant("easy", "time-limit")


def findings_of(folder, **options):
    bench = read_bench(folder)
    return bench, compare(bench, bench.baseline(None), **options)


def keep(folder, columns, policy="easy", **changes):
    cell = a_cell(policy, **changes)
    write_cell(folder, CellResult(cell, DONE, {}, {"processors": PROCESSORS}), columns)


def test_pairs_differ_in_the_policy_only(tmp_path):
    write_made(tmp_path, {"easy": 1.0, "conservative": 1.5}, seeds=range(6))
    keep(tmp_path, made_columns(7), "conservative", seed=77)  # nobody to compare with
    keep(tmp_path, made_columns(0, factor=9.0), "conservative", trace="other")
    keep(tmp_path, made_columns(0, factor=9.0), "conservative", setting={"jobs": 10})
    bench, found = findings_of(tmp_path)
    assert bench.contestants == [Contestant("conservative", "time-limit"), EASY]
    (one,) = found.of("wait_mean")
    assert (one.scenario.name, one.contestant.name) == ("made, jobs none", "conservative")
    assert one.estimate.difference == pytest.approx(0.5, abs=0.002)  # waits are whole seconds
    assert found.faced[0].seeds == tuple(range(6))
    assert any("1 of 7 runs of conservative have no run of easy" in note for note in found.notes)


def test_values_are_those_of_the_trimmed_jobs(tmp_path):
    cells = write_made(tmp_path, {"easy": 1.0, "conservative": 1.5}, seeds=(3,))
    _, found = findings_of(tmp_path, trim=Trim(0.1, 0.2))
    assert len(cells) == 2
    jobs = made_columns(3)
    middle = np.argsort(jobs.submit_s, kind="stable")[20:160]
    (one,) = found.of("wait_mean")
    assert one.estimate.base == pytest.approx((jobs.start_s - jobs.submit_s)[middle].mean())
    assert one.jobs == 140
    by_size = found.of("wait_p95", "size")
    assert sum(each.jobs for each in by_size) == 140
    assert found.faced[0].judged == 140


@pytest.mark.parametrize(
    ("seeds", "changes", "options", "over"),
    [
        (6, {}, {}, "runs and users"),  # one week only
        (6, {"perturbation": "weeks", "parameters": {"weeks": True}}, {}, "runs"),
        (6, {}, {"over": Over.RUNS}, "runs"),
        (6, {}, {"over": Over.USERS}, "users"),
        (6, {}, {"over": Over.WEEKS}, ""),
        (2, {}, {}, "users"),
        (2, {}, {"over": Over.RUNS}, ""),
    ],
)
def test_what_is_resampled_follows_from_what_was_run(tmp_path, seeds, changes, options, over):
    for policy, factor in (("easy", 1.0), ("conservative", 1.5)):
        for seed in range(seeds):
            noise = 1 + 0.02 * np.random.default_rng(seed).normal()
            keep(tmp_path, made_columns(seed, factor=factor * noise), policy, seed=seed, **changes)
    _, found = findings_of(tmp_path, **options)
    assert found.faced[0].over == over
    (one,) = found.of("wait_mean")
    assert one.estimate.over == over
    assert one.estimate.has_interval == bool(over)
    (longest,) = found.of("wait_max")
    assert longest.estimate.has_interval == ("runs" in over)


def test_a_short_trace_of_few_users_has_intervals_over_runs(tmp_path):
    for policy, factor in (("easy", 1.0), ("conservative", 1.5)):
        for seed in range(5):
            columns = made_columns(seed, n_jobs=40, factor=factor)
            keep(tmp_path, replace(columns, user=columns.user % 5), policy, seed=seed)
    _, found = findings_of(tmp_path)
    assert found.faced[0].over == "runs"
    assert all(one.estimate.over == "runs" for one in found.of("wait_mean"))


def test_seeds_that_change_nothing_are_one_run(tmp_path):
    for policy, factor in (("easy", 1.0), ("conservative", 1.5)):
        for seed in range(6):
            keep(tmp_path, made_columns(0, factor=factor), policy, seed=seed)
    _, found = findings_of(tmp_path)
    assert (found.faced[0].distinct, found.faced[0].over) == (1, "users")
    assert "6 seeds of conservative gave the same schedules: they count as one" in found.notes[0]


def test_the_same_policy_twice_shows_no_difference(tmp_path):
    for name in ("easy", "conservative"):
        for seed in range(6):
            keep(tmp_path, made_columns(seed), name, seed=seed)
    _, found = findings_of(tmp_path)
    outcomes = {one.verdict.words for one in found.comparisons if one.estimate.has_interval}
    assert outcomes == {"no difference: all values are equal"}
    assert found.faced[0].harm.jobs_worse == 0


def test_older_results_of_the_same_names_give_way(tmp_path):
    write_made(tmp_path, {"easy": 1.0, "conservative": 2.0}, seeds=(0,))
    keep(tmp_path, made_columns(0, factor=3.0), "conservative", version="0.2.0")
    bench, found = findings_of(tmp_path)
    assert bench.superseded == 1
    assert found.of("wait_mean")[0].estimate.difference == pytest.approx(2.0, abs=0.01)
    assert any("1 results of an earlier version" in note for note in found.notes)


def test_runs_of_an_earlier_policy_are_no_further_seeds(tmp_path):
    for seed in range(3):
        keep(tmp_path, made_columns(seed), seed=seed)
        old = {"policy_text": "{}", "seed": seed}
        keep(tmp_path, made_columns(seed, factor=9.0), "conservative", **old)
    keep(tmp_path, made_columns(0, factor=2.0), "conservative")
    bench, found = findings_of(tmp_path)
    assert (bench.superseded, found.faced[0].seeds) == (3, (0,))


def test_jobs_that_run_longer_are_told(tmp_path):
    columns = made_columns(0)
    keep(tmp_path, columns)
    longer = replace(columns, end_s=columns.end_s + 600, run_s=columns.run_s + 600)
    keep(tmp_path, longer, "conservative")
    _, found = findings_of(tmp_path)
    (wait,), (response,) = found.of("wait_mean"), found.of("response_mean")
    assert wait.estimate.difference == 0
    assert response.estimate.other - response.estimate.base == pytest.approx(600)
    assert found.faced[0].longer == pytest.approx(600 / columns.run_s.mean(), rel=0.1)
    assert any("longer under conservative than under" in note for note in found.notes)


def test_scenarios_of_one_name_are_told_apart(tmp_path):
    changes = {
        "file 00000000, jobs none": {},
        "file 11111111, jobs none": {"trace_sha256": "1" * 64},
        "file 11111111, jobs 9": {"trace_sha256": "1" * 64, "setting": {"jobs": 9}},
    }
    for each in changes.values():
        keep(tmp_path, made_columns(0), **each)
        keep(tmp_path, made_columns(0, factor=1.5), "conservative", **each)
    keep(tmp_path, made_columns(0), perturbation="ties", parameters={"ties": True})
    bench, found = findings_of(tmp_path)
    names = {f"made, {mark}" for mark in changes} | {"made, ties"}
    assert {scenario.name for scenario in bench.cells} == names
    assert any("3 scenarios of trace 'made', perturbation 'none' differ" in n for n in found.notes)


@pytest.mark.parametrize(
    ("name", "words"),
    [("mine", "no result has it"), ("conservative", "several.*conservative/last-two")],
)
def test_a_baseline_that_is_not_one_is_told(tmp_path, name, words):
    write_made(tmp_path, {"easy": 1.0}, seeds=(0,))
    for predictor in ("last-two", "oracle"):
        keep(tmp_path, made_columns(0), "conservative", predictor=predictor)
    bench = read_bench(tmp_path)
    with pytest.raises(ResultError, match=words):
        bench.baseline(name)
    assert bench.baseline("conservative/oracle").predictor == "oracle"
    assert bench.baseline("easy") == bench.baseline(None) == EASY


# ---------------------------------------------------------------- page, tables, command


class Tags(HTMLParser):
    """Every tag that is opened is closed, in the order of nesting."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("kept")
    write_made(tmp_path, {"easy": 1.0, "conservative": 1.5, "slurm-like": 0.9}, seeds=range(5))
    keep(tmp_path, made_columns(1), trace="<b>other</b>")
    keep(tmp_path, made_columns(1, factor=1.2), "conservative", trace="<b>other</b>")
    write_cell(tmp_path, CellResult(a_cell(seed=99), FAILED, error="it ended"))
    return tmp_path


@pytest.fixture(scope="module")
def judged(kept):
    """Bench and findings."""
    return findings_of(kept)


def test_the_page_is_whole_and_says_the_verdict_first(judged, tmp_path):
    bench, found = judged
    write_page(tmp_path / "page.html", "Title & more", bench, found, "wait_mean")
    text = (tmp_path / "page.html").read_text()
    page = Tags()
    page.feed(text)
    assert page.open == []
    assert "<b>other</b>" not in text
    assert not re.search(r"(src|href)=|<script|\{\{|url\(|\bnan\b", text)
    words = " ".join(" ".join(page.text).split())
    first = words.index("Verdict: mean wait")
    assert first < words.index("Policies and traces") < words.index("The busiest stretch")
    for one in found.of("wait_mean"):
        assert one.verdict.words in words
    assert "1 cells failed and are left out" in words
    assert text.count("<path d=") >= 2 * 5  # both charts of five distributions


def test_names_on_the_page_are_text_not_markup(tmp_path):
    script = "<script>alert(1)</script>"
    for policy, factor in (("easy", 1.0), (script, 1.5)):
        for seed in range(5):
            cell = replace(a_cell(seed=seed, trace=script), policy=policy, policy_text=policy)
            done = CellResult(cell, DONE, {}, {"processors": PROCESSORS})
            write_cell(tmp_path, done, made_columns(seed, factor=factor))
    bench, found = findings_of(tmp_path)
    write_page(tmp_path / "page.html", script, bench, found, "wait_mean")
    text = (tmp_path / "page.html").read_text()
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10


def test_the_tables_hold_every_run_and_the_measures_of_the_comparison(judged, tmp_path):
    bench, found = judged
    trim = found.trim
    assert table.write_csv(tmp_path / "t.csv", bench, trim) == table.write_parquet(
        tmp_path / "t.parquet", bench, trim
    )
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["key"] for row in rows}) == 5 * 3 + 2 + 1
    (failed,) = (row for row in rows if row["status"] == "failed")
    assert (failed["seed"], failed["wait_mean"], failed["class"]) == ("99", "", "")
    of_easy = [
        row for row in rows
        if (row["policy"], row["trace"], row["class_kind"]) == ("easy", "made", "all")
    ]  # fmt: skip
    for quantity in OF_JOBS + OF_RUNS:
        one = found.of(quantity.name)[-1]
        assert one.scenario.trace == "made"
        mean = np.mean([float(row[quantity.name]) for row in of_easy])
        assert mean == pytest.approx(one.estimate.base), quantity.name
    same = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert [row["key"] for row in same] == [row["key"] for row in rows]
    assert [row["wait_mean"] for row in same] == [
        float(row["wait_mean"]) if row["wait_mean"] else None for row in rows
    ]


def test_parquet_without_pyarrow_names_the_extra(kept, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"schedbridge\[experiments\]"):
        table.write_parquet(tmp_path / "t.parquet", read_bench(kept), Trim())


@pytest.mark.parametrize("option", ["--html", "--csv", "--parquet"])
def test_a_full_disk_is_told_with_the_file(kept, tmp_path, capsys, option):
    path = tmp_path / "out"
    path.symlink_to("/dev/full")  # what is removed by mistake is the link
    with pytest.raises(SystemExit) as ended:
        main(["lab", "experiment-report", str(kept), option, str(path)])
    said = capsys.readouterr().err
    assert (ended.value.code, said) == (1, f"schedbridge: {path}: No space left on device\n")


def test_findings_as_json_have_no_numbers_that_json_lacks(judged):
    _, found = judged
    text = json.dumps(plain(found), allow_nan=False)
    read = json.loads(text)
    assert len(read["comparisons"]) == len(found.comparisons)
    assert {one["measure"] for one in read["comparisons"]} == set(BY_NAME)
    assert read["fairness"][0]["jobs_worse"] is not None


def called(*arguments):
    import typer

    app = typer.Typer()
    app.command()(report)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_command_writes_what_it_is_asked_for(kept, tmp_path):
    done = called(kept, "--html", tmp_path / "r.html", "--csv", tmp_path / "r.csv")
    assert done.exit_code == 0, done.output
    assert "17 runs; mean wait, compared with easy" in done.output
    assert re.search(r"slurm-like +better by [\d.]+ to [\d.]+ %", done.output)
    assert "Holm's correction for 3 comparisons" in done.output
    assert (tmp_path / "r.html").is_file()
    assert (tmp_path / "r.csv").is_file()
    options = ("--baseline", "conservative", "--measure", "wait_p99", "--over", "runs")
    requested = called(kept, "--json", *options)
    assert json.loads(requested.output)["baseline"]["policy"] == "conservative"


def test_the_experiments_file_names_folder_baseline_and_cells(tmp_path):
    file = tmp_path / "e.yaml"
    trace = tmp_path / "t.swf"
    trace.write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n")
    file.write_text(
        "results: kept\npolicies: [conservative, easy]\ntraces: [t.swf]\nseeds: 2\n"
        "perturbations: [ties]\n"
    )
    from bridge.cli.experiments.grid import grid_of
    from bridge.lab.experiments.definition import read_definition

    grid = grid_of(read_definition(file), file)
    assert len(grid.cells) == 4
    for cell in grid.cells:
        factor = 2.0 if cell.policy == "easy" else 1.0
        columns = made_columns(cell.seed, factor=factor)
        result = CellResult(cell, DONE, {}, {"processors": PROCESSORS})
        write_cell(grid.folder, result, columns)
        write_cell(grid.folder, replace(result, cell=replace(cell, seed=9, commit="x")), columns)
        other = replace(cell, perturbation="mine", parameters={"load": 2.0})
        write_cell(grid.folder, replace(result, cell=other), columns)
    done = called(file, "--json")
    assert done.exit_code == 0, done.output
    read = json.loads(done.output)
    assert read["baseline"] == {"policy": "conservative", "predictor": "time-limit"}
    assert [one["perturbation"] for one in read["fairness"]] == ["ties"]
    assert read["fairness"][0]["seeds"] == [0, 1, 9]


# ---------------------------------------------------------------- parts


def test_the_busiest_stretch_is_where_jobs_wait_most():
    start = np.arange(1000) * 100.0
    waits = np.where((start >= 50_000) & (start < 75_000), 5000.0, 1.0)
    jobs = some_jobs(start - waits, waits, run_s=90.0, width=4)
    stretch = busiest_stretch(jobs)
    assert (stretch.from_s, stretch.until_s) == (50_000, 74_900)
    text = gantt(jobs, stretch, "<easy>")
    assert text.count("<rect") == 249  # the last one starts at the end of the stretch
    assert "&lt;easy&gt;" in text
    assert "waited 1 h 23 min" in text
    crowded = some_jobs([0.0] * 20, [5.0] * 20, run_s=100.0, width=64)
    assert "Jobs shared CPUs" in gantt(crowded, busiest_stretch(crowded), "x")
    unknown = replace(jobs, capacity=None)
    assert "size of the machine is unknown" in gantt(unknown, stretch, "x")


def test_colours_grow_darker_with_the_distance_from_zero():
    def light(text):
        return sum(int(text[at : at + 2], 16) for at in (1, 3, 5))

    for sign in (-1, 1):
        steps = [light(colour(sign * gain)) for gain in (0.0, 0.25, 0.5, 1.0)]
        assert steps == sorted(steps, reverse=True)
    assert colour(1.0) != colour(-1.0)


def test_runs_that_are_not_the_policys_are_named(tmp_path):
    write_made(tmp_path, {"easy": 1.0}, seeds=(0, 1))
    told = {"fell_back": 3, "decisions": 9, "unfinished": 2}
    for seed, results in ((0, told), (1, {})):
        cell = a_cell("conservative", seed=seed)
        result = CellResult(cell, DONE, results, {"processors": PROCESSORS})
        write_cell(tmp_path, result, made_columns(seed, factor=1.5))
    _, found = findings_of(tmp_path)
    (note,) = [note for note in found.notes if "doubtful" in note]
    assert "1 of 2 runs of conservative" in note
    assert "the policy failed in 3 of 9 decisions" in note
    assert "2 jobs did not end" in note


def test_intervals_without_chance_say_so(tmp_path):
    write_made(tmp_path, {"easy": 1.0, "conservative": 1.5}, seeds=range(6))
    _, few = findings_of(tmp_path, over=Over.USERS)
    _, both = findings_of(tmp_path)
    assert [sum("leave out chance" in note for note in one.notes) for one in (few, both)] == [1, 0]
