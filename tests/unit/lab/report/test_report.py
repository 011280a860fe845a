# SPDX-License-Identifier: Apache-2.0
import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.power.measures import PowerBounds, SystemPower, power_measures
from bridge.extensions.power.rules import Corridor
from bridge.lab.report.ascii import ascii_gantt
from bridge.lab.report.columns import COLUMNS, columns_of, milliseconds
from bridge.lab.report.gantt import bars_of
from bridge.lab.report.html import write_html
from bridge.lab.report.plots import save_plots
from bridge.lab.report.promises import StartErrorCurve, Track, draw_accuracy
from bridge.lab.report.run import Run, figures, file_word, write_jobs_csv
from bridge.lab.report.series import busy_share, queue_length, time_span_s
from bridge.measures import ExecutedSchedule, Spells, measure
from bridge.model.parts import NO_PARTS
from bridge.state.accuracy import PROMISE, StartColumns
from bridge.units import NEVER

STABLE_KEYS = [
    "policy",
    "jobs",
    "wait_s_mean",
    "bounded_slowdown_mean",
    "slowdown_mean",
    "turnaround_s_mean",
    "utilization",
    "makespan_s",
    "decision_ms_mean",
    "decision_ms_p99",
]


def ints(*values):
    return np.array(values, dtype=np.int64)


def some_starts():
    """A start 5 s before the first promise, on the last one; one that was promised nothing."""
    promise = np.array([(10, 1, 5, 3, 2, 0, 5), (0,) * 7], dtype=PROMISE)
    return StartColumns(ints(5, 0), promise, gone=1)


def some_power():
    """Too much for 5 s, too little for 5 s, in a corridor from 20 to 30 W."""
    power = SystemPower(ints(0, 5, 10), ints(40, 10, 25), 15)
    bounds = PowerBounds(Corridor((0,), (20,), (30,)), grace_s=1)
    return power_measures(power, bounds, lambda at_s, lower_w, upper_w: True)


def a_run(policy="easy", placed=True, starts=None, predicted=None, power=None):
    """Job a on nodes 0, 1 and 3, job b on node 2 after a wait of 5 s, job c never."""
    judged = None if starts is None else starts.accuracy()
    parts = NO_PARTS.having("power", power)
    schedule = ExecutedSchedule(
        4, ints(0, 0, 3), ints(0, 5, NEVER), ints(10, 15, NEVER), ints(3, 1, 4)
    )
    return Run(
        policy=policy,
        engine="cycle",
        schedule=schedule,
        measures=measure(schedule, np.array([1.0, 2.0]), judged, predicted, parts),
        node_names=("n0", "n1", "n2", "n3"),
        id=np.array(["a", "b", "c"], dtype=object),
        time_limit_s=ints(20, 20, 20),
        indptr=ints(0, 3, 4, 4) if placed else ints(0, 0, 0, 0),
        nodes=np.array([0, 1, 3, 2] if placed else [], dtype=np.int32),
        decision_ms=np.array([1.0, 2.0]),
        extra={"refusals": 0},
    )


def test_figures_have_the_stable_keys_and_are_json():
    found = figures(a_run())
    assert list(found)[: len(STABLE_KEYS)] == STABLE_KEYS
    assert (found["jobs"], found["unfinished"], found["wait_s_mean"]) == (2, 1, 2.5)
    assert json.loads(json.dumps(found)) == found


def test_figures_hold_how_announced_starts_came_true():
    assert figures(a_run())["starts"] is None
    found = figures(a_run(starts=some_starts()))
    assert json.loads(json.dumps(found)) == found
    starts = found["starts"]
    assert (starts["promised"], starts["unpromised"], starts["gone"]) == (1, 1, 1)
    assert (starts["first"]["median_s"], starts["last"]["median_s"]) == (-5, 0)
    assert (starts["changes"], starts["later_s"], starts["earlier_s"]) == (2, 0, 5)


def test_figures_hold_how_run_times_were_foreseen():
    assert figures(a_run())["run_times"] is None
    found = figures(a_run(predicted=ints(20, 5, 0)))["run_times"]
    assert json.loads(json.dumps(found)) == found
    assert (found["jobs"], found["under"], found["accuracy"]) == (2, 0.5, 0.5)
    assert found["off_s"]["mean"] == 7.5


def test_figures_hold_the_power_of_a_run():
    assert "power" not in figures(a_run())
    found = figures(a_run(power=some_power()))["power"]
    assert json.loads(json.dumps(found)) == found
    assert (found["energy_j"], found["mean_w"], found["peak_w"]) == (375, 25.0, 40)
    assert found["upper"]["all"] == {"number": 1, "seconds": 5, "watt_seconds": 50}
    assert found["upper"]["late"] == {"number": 1, "seconds": 4, "watt_seconds": 40}


def test_what_nobody_measured_is_not_shown():
    silent = a_run()
    heard = a_run("heard", starts=some_starts(), predicted=ints(20, 5, 0), power=some_power())
    assert len(columns_of([silent])) < len(columns_of([heard])) == len(COLUMNS)
    (changes,) = (column for column in COLUMNS if column.heading.startswith("changes"))
    assert [changes.show(run) for run in (silent, heard)] == ["not measured", "2.00"]
    assert changes.best([silent, heard]) is None  # one alone is not the best
    nobody = StartColumns(ints(), np.zeros(0, dtype=PROMISE))
    assert changes.show(a_run(starts=nobody)) == "not measured"


@pytest.mark.parametrize("empty", [True, False])
def test_a_plot_of_promises(tmp_path, empty):
    curves = [] if empty else [StartErrorCurve("batch", list(range(-50, 51)), list(range(101)))]
    track = Track([], [], [], 300) if empty else Track([0, 300], [5.0, 7.0], [9.0, 8.0], 300)
    draw_accuracy(tmp_path / "a.png", "title", curves, track)
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_jobs_as_csv(tmp_path):
    write_jobs_csv(tmp_path / "jobs.csv", a_run())
    rows = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    assert [row["job"] for row in rows] == ["a", "b", "c"]
    assert (rows[0]["nodes"], rows[1]["nodes"], rows[2]["nodes"]) == ("n[0-1,3]", "n2", "")
    assert (rows[1]["wait_s"], rows[1]["bounded_slowdown"]) == ("5", "1.5")
    assert (rows[2]["processors"], rows[2]["start_s"], rows[2]["wait_s"]) == ("4", "", "")


def test_a_gantt_of_letters():
    run = a_run()
    drawn = ascii_gantt(
        run.node_names, run.schedule.start_s, run.schedule.end_s, run.indptr, run.nodes
    )
    assert drawn.splitlines() == [
        "   0         1",
        "   012345678901234",
        "n0 aaaaaaaaaa.....",
        "n1 aaaaaaaaaa.....",
        "n2 .....bbbbbbbbbb",
        "n3 aaaaaaaaaa.....",
    ]


def test_a_gantt_of_letters_shows_sharing_and_keeps_to_the_width():
    start_s, end_s, indptr = ints(0, 500), ints(1000, 1000), ints(0, 1, 2)
    nodes = np.array([0, 0], dtype=np.int32)
    drawn = ascii_gantt(["n0"], start_s, end_s, indptr, nodes, column_s=100)
    assert drawn.splitlines()[2:] == ["n0 aaaaa#####", "   one column is 100 s"]
    assert max(map(len, ascii_gantt(["n0"], start_s, end_s, indptr, nodes).splitlines())) <= 164


def test_bars_are_runs_of_adjacent_nodes():
    bars = bars_of(a_run(), 10)
    assert list(zip(bars.job, bars.first_node, bars.last_node, strict=True)) == [
        (0, 0, 1),
        (0, 3, 3),
        (1, 2, 2),
    ]
    assert bars.complete


def test_a_resized_job_has_bars_of_each_width():
    on = np.array([0, 1, 3], dtype=np.int32)
    spells = Spells.of(
        [(0, -9, -4, on), (0, 0, 4, on), (1, 5, 15, on[:1]), (0, 4, 6, on), (0, 6, 10, on[:2])]
    )
    bars = bars_of(replace(a_run(), spells=spells), 10)
    drawn = (bars.job, bars.from_s, bars.until_s, bars.first_node, bars.last_node)
    assert list(zip(*drawn, strict=True)) == [
        (0, 0, 6, 0, 1),
        (0, 0, 6, 3, 3),
        (1, 5, 15, 0, 0),
        (0, 6, 10, 0, 1),
    ]


def test_of_too_many_jobs_those_that_waited_most_are_shown():
    bars = bars_of(a_run(), 1)
    assert (bars.jobs.tolist(), bars.complete) == ([1], False)


def test_series_are_exact_means():
    schedule = a_run().schedule
    span_s = time_span_s(schedule)
    assert span_s == (0, 15)
    busy = busy_share(schedule, span_s, 3)
    assert busy.edges_s.tolist() == [0, 5, 10, 15]
    assert busy.value.tolist() == [0.75, 1.0, 0.25]
    queue = queue_length(schedule, span_s, 3)
    assert queue.value.tolist() == [1.4, 1.0, 1.0]


@pytest.mark.parametrize("placed", [True, False])
def test_the_page_stands_alone_and_holds_its_data(tmp_path, placed):
    path = tmp_path / "report.html"
    write_html(
        path, "<a> & b", "lead", {"note": "</script>"}, [a_run(placed=placed), a_run("</script>")]
    )
    page = path.read_text()
    assert "&lt;a&gt; &amp; b" in page
    assert not re.search(r"\{\{\w+\}\}", page)
    assert not re.search(r"""(src|href)\s*=\s*["']""", page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    runs = json.loads(data[1])["runs"]
    assert [run["policy"] for run in runs] == ["easy", "</script>"]
    assert (runs[0]["gantt"] is not None) == placed
    bars = [[0, 0, 1, 0, 10], [0, 3, 3, 0, 10], [1, 2, 2, 5, 15]]
    assert runs[1]["gantt"]["bars"] == bars
    assert runs[1]["gantt"]["jobs"][1] == ["b", 5, 15, 0, 1, 0]


def test_names_on_the_page_are_text_not_markup(tmp_path):
    path, name = tmp_path / "report.html", "<script>alert(1)</script>"
    runs = [a_run(name), a_run(f"{name}'\"")]
    write_html(path, name, name, {name: name}, runs, against=runs[1])
    page = path.read_text()
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4 + 2 * 2
    assert page.count("<script") == page.count("</script>") == 2


def test_plots_are_written(tmp_path):
    written = save_plots(tmp_path, [a_run(), a_run("a b/c", placed=False)])
    assert {path.name for path in written} == {
        "utilization.png",
        "queue.png",
        "waits.png",
        "gantt-easy.png",
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


@pytest.mark.parametrize(
    ("text", "word"), [("easy", "easy"), ("a b/c", "a-b-c"), ("../..", "policy"), ("é (2)", "2")]
)
def test_policy_names_in_file_names(text, word):
    assert file_word(text) == word


@pytest.mark.parametrize(
    ("value", "text"), [(12.34, "12.3 ms"), (0.5, "0.5 ms"), (0.0421, "42 µs"), (0.0, "0 µs")]
)
def test_decision_times(value, text):
    assert milliseconds(value) == text
