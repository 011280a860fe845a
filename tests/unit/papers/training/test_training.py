# SPDX-License-Identifier: Apache-2.0
"""Training itself. Without PyTorch these are named as left out; one says how to get it."""

import importlib.util
import json

import numpy as np
import pytest

from bridge.cli.main import main
from bridge.cli.train import need_torch
from bridge.errors import ConfigError
from bridge.papers.placement.neural_weights import NETWORKS, Q, network_of, read_weights

there = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not there, reason="PyTorch is missing: schedbridge[train]")


def test_without_torch_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'schedbridge\[train\]'"):
        need_torch()


def train(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["lab", "train", "placement", *arguments])
    return stopped.value.code


SMALL = ("--steps", "150", "--boards", "16", "--json")


@needs_torch
@pytest.mark.parametrize("lessons", ["0", "1"])
def test_a_short_training_and_how_it_goes_on(tmp_path, capsys, lessons):
    out = tmp_path / "out"
    requested = ("--out", str(out), "--network", "fcn-1", "--lessons", lessons, *SMALL)
    assert train(*requested) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["steps"] >= 150
    assert 0.5 < said["cost_to_sequential"] < 1
    network, weights = read_weights(out / "weights.npz")
    assert network == "fcn-1"
    curve = json.loads((out / "curve.json").read_text())["curve"]
    assert [row["steps"] for row in curve] == sorted({row["steps"] for row in curve})
    assert (out / "curve.svg").read_text().startswith("<?xml")
    assert train(*requested) == 1
    assert "--resume continues it" in capsys.readouterr().err
    assert train(*requested, "--resume", "--steps", "400") == 0
    assert json.loads(capsys.readouterr().out)["steps"] >= 400
    longer = json.loads((out / "curve.json").read_text())["curve"]
    assert longer[: len(curve)] == curve
    changed = read_weights(out / "weights.npz")[1]
    assert not np.array_equal(weights[0], changed[0])
    assert train(*requested, "--resume", "--network", "cnn-1") == 1
    assert "is of fcn-1" in capsys.readouterr().err


@needs_torch
def test_mistakes_are_one_line(tmp_path, capsys):
    (tmp_path / "checkpoint.pt").write_text("nonsense")
    for arguments, problem in (
        (("--resume",), "is not a checkpoint"),
        (("--network", "cnn-9"), "no network 'cnn-9'"),
    ):
        assert train("--out", str(tmp_path), *SMALL, *arguments) == 1
        error = capsys.readouterr().err
        assert problem in error
        assert error.count("\n") == 1
    assert train("--out", str(tmp_path / "none"), *SMALL, "--resume") == 1
    assert "to continue from" in capsys.readouterr().err
    assert train("--out", str(tmp_path / "checkpoint.pt"), *SMALL) == 1
    assert "checkpoint.pt cannot be written" in capsys.readouterr().err


@needs_torch
def test_who_interrupts_keeps_what_was_learnt(tmp_path, capsys, monkeypatch):
    from bridge.papers.placement.training import placement

    rounds = []

    def interrupting(self, boards, done, real=placement.PpoLearner.lesson):
        if rounds:
            raise KeyboardInterrupt
        rounds.append(done)
        return real(self, boards, done)

    requested = ("--out", str(tmp_path), "--network", "fcn-1", "--boards", "16", "--json")
    with monkeypatch.context() as patched:
        patched.setattr(placement.PpoLearner, "lesson", interrupting)
        assert train(*requested, "--steps", "100000") == 130
    assert read_weights(tmp_path / "weights.npz")[0] == "fcn-1"
    capsys.readouterr()
    assert train(*requested, "--steps", "1", "--resume") == 0
    said = json.loads(capsys.readouterr().out)
    assert 0 < said["steps"] < 100000
    assert 0.5 < said["cost_to_sequential"] < 1.1


@needs_torch
@pytest.mark.parametrize("network", NETWORKS)
def test_torch_and_the_core_agree(network):
    import torch

    from bridge.papers.placement.training.ppo import PpoLearner, PpoSettings

    learner = PpoLearner(network, PpoSettings(), 0)
    state = np.zeros((1, 4, Q), np.float32)
    state[0, :, :60] = np.random.default_rng(0).random((4, 60)).astype(np.float32)
    state[0, 2, :60], state[0, 3, :60] = 0.5, 0.25
    wanted = learner.actor(torch.from_numpy(state)).detach().numpy()[0, :60]
    found = network_of(network, learner.weights()).numbers(
        np.ascontiguousarray(state[0, 0, :60]), np.ascontiguousarray(state[0, 1, :60]), 0.5, 0.25
    )
    assert np.allclose(found, wanted, atol=1e-5)


@needs_torch
def test_what_is_not_there_is_never_chosen_and_lessons_teach():
    import torch

    from bridge.model.hop_tree import Metric
    from bridge.papers.placement.training.environment import Boards
    from bridge.papers.placement.training.ppo import PpoLearner, PpoSettings
    from bridge.papers.placement.training.windows import paper_hop_tree, stream

    windows = [w for w in stream(paper_hop_tree(Metric.CODE), 1, 40) if len(w.idle) < Q]
    boards = Boards(windows, 64, 0)
    learner = PpoLearner("fcn-1", PpoSettings(moves=2, batch=64, rate=3e-3), 0)
    (_, legal, choice, _, _), _ = learner.play(boards)
    assert torch.gather(legal, 1, choice).all()
    apart = [learner.lesson(boards, 0).divergence for _ in range(25)]
    assert np.mean(apart[-5:]) < 0.8 * np.mean(apart[:3])
    before = learner.weights()
    learner.learn(boards, 0.5)
    assert not np.array_equal(before[0], learner.weights()[0])
