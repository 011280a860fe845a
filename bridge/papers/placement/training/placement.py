# SPDX-License-Identifier: Apache-2.0
"""Trains a placement network: rounds, held-out windows, checkpoints.

Terms
    step       one decision used for training.
    round      as in `bridge.papers.placement.training.ppo`.
    lessons    the first part of the steps: supervised training with the cost of every choice
               (`PpoLearner.lesson`). The rest is proximal policy optimisation.
    held out   windows not used for training. The cost that annealing with the network reaches on
               them, relative to sequential placement, is the `cost` of the learning curve.

Rules
    1. The output directory holds `checkpoint.pt` (all that resuming needs), `weights.npz` (for
       inference), `curve.json` and `curve.svg`. They are replaced atomically every minute and at
       the end.
    2. A resumed training continues from its last checkpoint, with other windows of the same
       stream.

Deviates: the paper trains by proximal policy optimisation alone (`lessons` 0).
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from bridge.core import RepairNetwork
from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, Metric
from bridge.papers.placement.neural_weights import network_of, write_weights
from bridge.papers.placement.training.curve import draw
from bridge.papers.placement.training.environment import Boards
from bridge.papers.placement.training.ppo import PpoLearner, PpoSettings
from bridge.papers.placement.training.windows import TrainingWindow, paper_hop_tree, stream

CHECKPOINT_S: Final = 60.0
_HELD_OUT_SEED: Final = 1_000_000  # of streams that no training draws
_HELD_OUT_MOVES: Final = 100
_ROUNDS_BETWEEN: Final = 20


@dataclass(frozen=True)
class Course:
    """What to train.

    Attributes:
        network: name in table II.
        steps: decisions to train on.
        boards: windows trained on at once.
        streams: most streams of either tree, of a hundred minutes each; one per 50,000 steps.
    """

    network: str = "cnn-3"
    steps: int = 2_000_000
    lessons: float = 0.6
    boards: int = 512
    streams: int = 20
    seed: int = 0


@dataclass
class TrainingProgress:
    """The progress of a training.

    Attributes:
        spent_s: seconds spent on them.
        curve: rows of steps, reward, entropy and divergence, some with cost.
    """

    steps: int = 0
    spent_s: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)


def windows(course: Course) -> list[TrainingWindow]:
    made = []
    for metric in Metric:
        hop_tree = paper_hop_tree(metric)
        for number in range(min(course.streams, 1 + course.steps // 50_000)):
            made += list(stream(hop_tree, course.seed * 1000 + number, 100))
    return made


class HeldOut:
    """Held-out windows."""

    def __init__(self) -> None:
        self._cases: list[tuple[HopTree, TrainingWindow]] = []
        for metric in Metric:
            hop_tree = paper_hop_tree(metric)
            some = list(stream(hop_tree, _HELD_OUT_SEED, 100))[10::2]
            self._cases += [(hop_tree, window) for window in some]
        self._first = self._total(
            lambda case, hop_tree: hop_tree.tree.sequential(case.idle, case.sizes)
        )

    def cost(self, network: RepairNetwork) -> float:
        """The cost that annealing with a network reaches, relative to sequential placement."""
        return (
            self._total(
                lambda one, hop_tree: network.anneal(
                    hop_tree.tree, hop_tree.metric, one.idle, one.sizes, _HELD_OUT_MOVES, 1
                )[0]
            )
            / self._first
        )

    def _total(self, place: Callable[[TrainingWindow, HopTree], Any]) -> float:
        return sum(
            float(hop_tree.costs(place(case, hop_tree)).sum()) for hop_tree, case in self._cases
        )


def train(
    course: Course,
    out: Path,
    *,
    resume: bool = False,
    settings: PpoSettings | None = None,
    tell: Callable[[TrainingProgress], None] = lambda _: None,
) -> TrainingProgress:
    """Trains a network.

    Args:
        out: output directory.
        resume: continue the training in it.
        tell: called after every round.

    Raises:
        ConfigError: the directory holds another training, holds none to resume, or cannot be
            written.
        KeyboardInterrupt: the training was interrupted; a checkpoint to resume from is written.
    """
    settings = settings or PpoSettings()
    learner = PpoLearner(course.network, settings, course.seed)
    progress = TrainingProgress()
    checkpoint = out / "checkpoint.pt"
    if resume:
        progress = _restore(checkpoint, learner, course)
    elif checkpoint.exists():
        raise ConfigError(
            "--out", f"{out} contains a training; --resume continues it, or name another directory"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "checkpoint.pt.part").touch()
        (out / "checkpoint.pt.part").unlink()
    except OSError as error:
        raise ConfigError("--out", f"{out} cannot be written: {error.strerror}") from None
    boards = Boards(windows(course), course.boards, hash((course.seed, progress.steps)) % 2**32)
    try:
        _learn(course, out, learner, boards, progress, tell=tell)
    except KeyboardInterrupt:
        if progress.curve:
            _save(out, learner, course, progress)
        raise
    return progress


def _learn(
    course: Course,
    out: Path,
    learner: PpoLearner,
    boards: Boards,
    progress: TrainingProgress,
    *,
    tell: Callable[[TrainingProgress], None],
) -> None:
    """Runs the rounds, with a checkpoint every minute and at the end."""
    held_out = HeldOut()
    began = time.monotonic() - progress.spent_s
    saved = time.monotonic()
    rounds = len(progress.curve)
    while progress.steps < course.steps:
        done = progress.steps / course.steps
        teach = done < course.lessons
        result = learner.lesson(boards, done) if teach else learner.learn(boards, done)
        progress.steps += result.decisions
        row = {"steps": float(progress.steps), **asdict(result)}
        del row["decisions"]
        rounds += 1
        if rounds % _ROUNDS_BETWEEN == 1 or progress.steps >= course.steps:
            row["cost"] = held_out.cost(network_of(course.network, learner.weights()))
        progress.curve.append(row)
        progress.spent_s = time.monotonic() - began
        tell(progress)
        if time.monotonic() - saved > CHECKPOINT_S or progress.steps >= course.steps:
            _save(out, learner, course, progress)
            saved = time.monotonic()


def _save(out: Path, learner: PpoLearner, course: Course, progress: TrainingProgress) -> None:
    """Replaces all files atomically."""

    def moved(name: str, write: Callable[[Path], object]) -> None:
        part = out / f"{name}.part"
        write(part)
        part.replace(out / name)

    kept = {
        "learner": learner.state(),
        "course": asdict(course),
        "steps": progress.steps,
        "spent_s": progress.spent_s,
        "curve": progress.curve,
    }
    moved("checkpoint.pt", lambda path: torch.save(kept, path))
    moved("weights.npz", lambda path: write_weights(path, course.network, learner.weights()))
    summary = {"course": asdict(course), "spent_s": round(progress.spent_s, 1)}
    rows = [{key: round(value, 5) for key, value in row.items()} for row in progress.curve]
    text = json.dumps({**summary, "curve": rows})
    moved("curve.json", lambda path: path.write_text(text, encoding="utf-8"))
    moved("curve.svg", lambda path: draw({course.network: progress.curve}, path))


def _restore(checkpoint: Path, learner: PpoLearner, course: Course) -> TrainingProgress:
    """Restores a learner from a checkpoint.

    Raises:
        ConfigError: there is none, or it is of another network.
    """
    try:
        kept = torch.load(checkpoint, weights_only=True)
        if kept["course"]["network"] != course.network:
            raise ConfigError(
                "--network", f"{checkpoint} is of {kept['course']['network']}, not {course.network}"
            )
        learner.resume(kept["learner"])
        return TrainingProgress(int(kept["steps"]), float(kept["spent_s"]), list(kept["curve"]))
    except FileNotFoundError:
        raise ConfigError("--resume", f"there is no {checkpoint} to continue from") from None
    except ConfigError:
        raise
    except Exception as error:
        why = type(error).__name__  # PyTorch's message explains how to execute the file's content
        raise ConfigError("--resume", f"{checkpoint} is not a checkpoint ({why})") from None
