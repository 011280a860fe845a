# SPDX-License-Identifier: Apache-2.0
import io
import json
import logging
import math
import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bridge.model.decisions.answer import TIMEOUT, Dispatched
from bridge.service import telemetry
from bridge.service.logs import BoundedHandler, JsonFormatter, TextFormatter, start_logging
from bridge.service.telemetry import Metrics


@pytest.fixture
def metrics():
    return Metrics("1.2", "easy")


def page(metrics):
    return generate_latest(metrics.registry).decode()


def test_every_metric_is_in_the_documented_table(metrics):
    metrics.gate_refused("controller.socket", "user")
    metrics.power_refused("n1", "range")
    metrics.decided("start", 1)
    metrics.decision_result("refused", 2015)
    metrics.started("batch", 1)
    metrics.announcements_changed(1, 0)
    metrics.run_times("last-two", (1, 0, 5, 0.5))
    metrics.resized("grow", "completed", 5)
    text = page(metrics)
    shown = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    shown = {name for name in shown if not name.endswith("_created")}
    named = set(re.findall(r"(?:schedbridge)?_[a-z_]+", telemetry.__doc__.split("| meaning |")[1]))
    full = {name if name.startswith("schedbridge") else f"schedbridge{name}" for name in named}
    assert shown <= full, shown - full
    assert all(name.startswith("schedbridge_") for name in shown)


def test_predicted_run_times(metrics):
    metrics.run_times("last-two", (2, 1, 30, 1.5))
    metrics.run_times("last-two", (3, 1, 40, 2.25))
    text = page(metrics)
    assert 'schedbridge_run_times_judged_total{predictor="last-two"} 3.0' in text
    assert 'schedbridge_run_times_underestimated_total{predictor="last-two"} 1.0' in text
    assert 'schedbridge_run_time_error_seconds_total{predictor="last-two"} 40.0' in text
    assert 'schedbridge_run_time_accuracy_total{predictor="last-two"} 2.25' in text


def test_resizes_by_direction_and_outcome(metrics):
    for outcome, lasted_s in (("asked", None), ("completed", 7), ("failed", 300)):
        metrics.resized("grow", outcome, lasted_s)
    metrics.resized("shrink", "completed", None)  # begun under an earlier service
    text = page(metrics)
    assert 'schedbridge_resizes_total{direction="grow",outcome="asked"} 1.0' in text
    assert 'schedbridge_resizes_total{direction="grow",outcome="failed"} 1.0' in text
    assert 'schedbridge_resizes_total{direction="shrink",outcome="completed"} 1.0' in text
    assert 'schedbridge_adaptation_seconds_sum{direction="grow"} 7.0' in text
    assert 'schedbridge_adaptation_seconds_count{direction="shrink"}' not in text


def test_cycles_and_failures(metrics):
    assert "schedbridge_controller_up 0.0" in page(metrics)
    metrics.cycle(wall_s=0.003, plan_s=0.001, failures=0)
    metrics.cycle(wall_s=0.3, plan_s=0.1, failures=2)
    text = page(metrics)
    assert "schedbridge_cycle_seconds_count 2.0" in text
    assert 'schedbridge_cycle_seconds_bucket{le="0.005"} 1.0' in text
    assert "schedbridge_policy_failures_total 2.0" in text
    assert "schedbridge_controller_up 1.0" in text


def test_announced_starts(metrics):
    metrics.started("batch", -30)
    metrics.started("batch", 5)
    metrics.announcements_changed(later=2, earlier=1)
    text = page(metrics)
    assert 'start_error_seconds_bucket{le="-10.0",partition="batch"} 1.0' in text
    assert 'start_error_seconds_bucket{le="0.0",partition="batch"} 1.0' in text
    assert 'start_error_seconds_bucket{le="10.0",partition="batch"} 2.0' in text
    assert 'schedbridge_announcements_changed_total{direction="later"} 2.0' in text


def test_the_policy_in_force_is_the_only_one(metrics):
    metrics.policy("other")
    text = page(metrics)
    assert 'policy="other"' in text
    assert 'policy="easy"' not in text


def test_logs_as_json():
    record = logging.LogRecord("bridge.x", logging.WARNING, "f", 1, "a %s\nb", ("c",), None)
    entry = json.loads(JsonFormatter().format(record))
    assert entry["message"] == "a c\nb"
    assert (entry["level"], entry["logger"]) == ("warning", "bridge.x")


FORGED = (
    "x\n2026-01-01 00:00:00,000 INFO bridge.serve: all is well\r\x1b[2J\u2028\x85\u202e\U000e0001"
)


def a_record(message, *arguments, error=None):
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("bridge.x", logging.WARNING, "f", 1, message, arguments, exc_info)


def raised(text):
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def lines_of(text):
    """As the most willing reader would split them."""
    return re.split("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)


def test_names_cannot_forge_lines_in_text():
    line = TextFormatter().format(a_record("job %s", FORGED))
    assert len(lines_of(line)) == 1
    assert line.isprintable()
    assert "\\n2026-01-01" in line
    shown = TextFormatter().format(a_record("failed", error=raised(FORGED)))
    first, *others = lines_of(shown)
    assert first.endswith("bridge.x: failed")
    assert len(others) >= 3
    assert all(other.startswith("    | ") for other in others)


def test_names_cannot_forge_lines_in_json():
    line = JsonFormatter().format(a_record("job %s", FORGED, error=raised(FORGED)))
    assert len(lines_of(line)) == 1
    assert line.isprintable()
    assert json.loads(line)["message"] == f"job {FORGED}"


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_a_line_is_bounded(formatter):
    line = formatter().format(a_record("job %s", "x" * 1_000_000, error=raised("y" * 1_000_000)))
    assert len(line) < 20_000


def test_one_kind_of_line_cannot_flood_the_log():
    stream, clock = io.StringIO(), [1000.0]
    handler = BoundedHandler(stream, lambda: clock[0])
    handler.setFormatter(TextFormatter())
    for number in range(40_000):
        handler.emit(a_record("refused process %d", number))
    handler.emit(a_record("something else"))
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 201
    assert lines[-1].endswith("something else")
    clock[0] += 60
    handler.emit(a_record("refused process %d", 1))
    assert (
        stream.getvalue().splitlines()[-2].endswith("39800 lines like the next one were left out")
    )


def test_an_exception_is_one_line_of_json():
    try:
        raise ValueError("x")
    except ValueError as error:
        record = logging.LogRecord(
            "b", logging.ERROR, "f", 1, "m", (), (ValueError, error, error.__traceback__)
        )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert "ValueError: x" in json.loads(line)["exception"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_only_the_wanted_severity_is_logged(form, capsys):
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        start_logging("warning", form)
        logging.getLogger("bridge.test").info("quiet")
        logging.getLogger("bridge.test").warning("loud")
    finally:
        root.handlers[:], root.level = before, level
        logging.getLogger("bridge").setLevel(logging.NOTSET)
    shown = capsys.readouterr().err
    assert "loud" in shown
    assert "quiet" not in shown


def test_what_a_dispatcher_did_is_counted():
    metrics = Metrics("1", "pcp20")
    metrics.dispatched(Dispatched(10, greedy=8.0, found=6.0, gap=0.25))
    assert metrics.registry.get_sample_value("schedbridge_solver_gap") == 0.25
    metrics.dispatched(Dispatched(7, greedy=8.0, found=8.0, fallback=TIMEOUT, killed=True))
    value = metrics.registry.get_sample_value
    assert value("schedbridge_solver_plans_total") == 1
    assert value("schedbridge_solver_fallbacks_total", {"reason": "timeout"}) == 1
    assert value("schedbridge_solver_killed_total") == 1
    assert math.isnan(value("schedbridge_solver_gap"))  # it is not that of the dispatch before
    assert value("schedbridge_solver_window_jobs") == 7
    assert value("schedbridge_solver_saved_ratio") == 0


def test_odd_names_in_labels_leave_the_page_and_the_other_series_as_they_are():
    """Of partitions, and of nodes; the page is one that Prometheus reads."""
    odd = (
        'a"b\\',
        "a\nschedbridge_odd_total 9\n",
        "\udc80",
        "x" * 5000,
        "\x1b[2J",
        "",
        "\u2028",
    )
    metrics = Metrics("1", "easy")
    for name in ("batch", *odd, "long"):
        metrics.started(name, 1)
        metrics.report_refused(name, "not placed")
        metrics.power_refused(name, "range")
    text = metrics.page().decode()
    samples = {
        (sample.name, sample.labels.get("partition", sample.labels.get("node"))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["schedbridge_start_error_seconds_count", "batch"] == 1
    assert samples["schedbridge_start_error_seconds_count", "long"] == 1
    assert not any(name == "schedbridge_odd_total" for name, _ in samples)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 1000
