# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/bench.py plan`: what scripts read, and what a wrong option says."""

import json

import numpy as np
import pytest
from bench import run as run_bench
from policy_bench.workloads import QueueShape, node_problem, queue, shares

from bridge.core import UNLIMITED, plan_nodes


def bench(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run_bench(["plan", *arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("shape", ["clustered", "log"])
def test_json_is_one_object(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--jobs", "50", "--nodes", "8", "--shape", shape, "--depth", "1", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["jobs"], result["nodes"], result["depth"]) == (50, 8, 1)
    assert result["shape"] == shape
    for kernel in ("counts", "map", "whole_nodes"):
        assert result[f"{kernel}_ms"] > 0
        assert len(result[f"{kernel}_ms_all"]) == 3
    assert result["starts_now"] >= 1


def test_a_human_reads_a_line_per_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--jobs", "50", "--nodes", "8") == 0
    out = capsys.readouterr().out
    assert "50 jobs (clustered), 8 nodes" in out
    assert len(out.splitlines()) == 4


@pytest.mark.parametrize(
    "arguments", [("--jobs", "0"), ("--nodes", "x"), ("--shape", "round"), ("--depth", "-1")]
)
def test_wrong_options_are_refused_by_name(
    arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*arguments) == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize("shape", list(QueueShape))
def test_queues_are_what_they_say(shape: QueueShape) -> None:
    count, limit_s = queue(shape, 2000, 100, seed=3)
    assert count.min() == 1
    assert 90 <= count.max() <= 100
    assert 60 <= limit_s.min() < limit_s.max() <= 86_400
    distinct = len(np.unique(limit_s))
    assert distinct == 8 if shape is QueueShape.CLUSTERED else distinct > 1000
    few, per_node = shares(shape, 2000, seed=3)
    plan = plan_nodes(node_problem(100, few, limit_s, per_node, UNLIMITED))
    assert (np.diff(plan.indptr) == few).all()
