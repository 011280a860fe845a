# SPDX-License-Identifier: Apache-2.0
"""The loop of benchmarks that run strategies on a real cluster: what is written, the exit code."""

import json
import signal
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = str(Path(__file__).parents[4] / "benchmarks")
TABLE = SimpleNamespace(in_short=str, lines=lambda found: [str(len(found["runs"]))])


@pytest.fixture
def strategies(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    from cluster_bench import strategies

    yield strategies
    for name in [name for name in sys.modules if name.split(".")[0] == "cluster_bench"]:
        del sys.modules[name]


def measured(strategies, file, names, on_cluster, add=True):
    given = Namespace(strategies=names, add=add, json=file, jobs=1, compression=1.0)
    return strategies.measure(
        given,
        ("strategy", "seed"),
        lambda _: {"seed": 7},
        on_cluster=on_cluster,
        simulated=lambda strategy, costs: {"of": strategy, **costs},
        table=TABLE,
    )


def result(right):
    return lambda _: {"right": right, "count": 2, "costs": {"change_s": 1.5}}


def test_a_run_takes_the_place_of_its_like(strategies, tmp_path):
    file = tmp_path / "x.json"
    assert measured(strategies, file, ["a", "b"], result(1)) == 1
    assert measured(strategies, file, ["b"], result(2)) == 1  # a is as wrong as before
    runs = json.loads(file.read_text())["runs"]
    assert [(run["strategy"], run["right"]) for run in runs] == [("a", 1), ("b", 2)]
    assert runs[1]["simulated"] == {"of": "b", "change_s": 1.5}
    assert all(run["commit"] and run["machine"]["load_average"] for run in runs)
    assert measured(strategies, file, ["a"], result(2)) == 0
    assert measured(strategies, file, ["b"], result(2), add=False) == 0
    assert [run["strategy"] for run in json.loads(file.read_text())["runs"]] == ["b"]


def test_a_run_that_fails_does_not_keep_others_from_theirs(strategies, tmp_path):
    def on_cluster(strategy):
        if strategy == "a":
            raise TimeoutError("no answer")
        return result(2)(strategy)

    file = tmp_path / "x.json"
    assert measured(strategies, file, ["a", "b"], on_cluster) == 1
    failed, good = json.loads(file.read_text())["runs"]
    assert (failed["error"], good["right"]) == ("no answer", 2)
