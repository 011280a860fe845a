# SPDX-License-Identifier: Apache-2.0
"""The common base of predictors: follows jobs from start to end, and corrects predictions.

Terms
    trait       the key of a job for a predictor: its user, or its name, queue and size.
    predicted    the run time that was expected of a job when it was first seen running; it stays.

Rules
    1. The prediction of an ended job is judged, then the job is learnt from, unless the machine cut
       it short. For a job that was never seen running, the present prediction is judged.
    2. A running job that exceeds its prediction gets a longer one (`extended`), at most its limit.
    3. While a job that could run has waited for longer than the predictor's patience, limits are
       used. Otherwise jobs with too short predictions would delay the first job in the queue again
       and again; with limits its promise holds.
    4. A job keeps the trait that it had while it waited, because its allocation tells less about
       its request.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import Dialect, dialect_of
from bridge.errors import ConfigError
from bridge.model.decisions.prediction import Prediction
from bridge.model.job import EndedTable, Ending, Hold
from bridge.model.learnt import Learning
from bridge.model.snapshot import Snapshot
from bridge.ports import Context, Predicted
from bridge.units import UNLIMITED_S

EXTENSIONS = ("stepwise", "second")
FIRST_S, SECOND_S = 60, 900
"""The first and the second extension of a prediction that was too short."""

_NOTHING = [-1, 0]


@dataclass(frozen=True)
class Expectation(ABC):
    """A predictor that learns from ended jobs; subclasses define the abstract methods.

    Attributes:
        extension: the extension of a run time that exceeds its prediction: `stepwise` or `second`.
        patience_s: time limits are used while a job that could run has waited for longer; None:
            predictions are always used.
    """

    extension: str = "stepwise"
    patience_s: int | None = 14_400

    name: ClassVar[str]
    """As registered."""

    def __post_init__(self) -> None:
        if self.extension not in EXTENSIONS:
            raise ConfigError(
                "extension", f"must be {' or '.join(EXTENSIONS)}, not '{self.extension}'"
            )
        if self.patience_s is not None and self.patience_s < 0:
            raise ConfigError("patience_s", f"must be 0 or more, or null, not {self.patience_s}")

    def predict(self, snapshot: Snapshot, context: Context) -> Predicted:
        """Learns and predicts; see `bridge.ports.PredictPolicy`."""
        learning = Learning(context.state.learnt_by(self.name))
        prediction = _predict(snapshot, learning, self)
        return Predicted(prediction, {self.name: learning.done()})

    @abstractmethod
    def waiting(self, snapshot: Snapshot) -> Sequence[Any]:
        """The traits of all pending jobs, in order."""

    @abstractmethod
    def running(self, snapshot: Snapshot, rows: Sequence[int]) -> Sequence[Any]:
        """The traits of running jobs that were not seen waiting."""

    @abstractmethod
    def ended(self, ended: EndedTable, rows: Sequence[int]) -> Sequence[Any]:
        """The traits of ended jobs that were not seen before."""

    @abstractmethod
    def expect(self, learnt: Learning, trait: Any) -> int:
        """The expected run time, s; 0: nothing is known."""

    @abstractmethod
    def learn(self, learnt: Learning, trait: Any, run_s: int) -> None:
        """Learns the run time of a job."""


def _impatient(snapshot: Snapshot, patience_s: int | None) -> bool:
    """Whether a job that could run has waited longer than the patience (rule 3)."""
    if patience_s is None:
        return False
    jobs = snapshot.jobs
    since_s = np.where(jobs.eligible_s > 0, jobs.eligible_s, jobs.submit_s)
    waits = (jobs.hold == Hold.NONE) & (since_s > 0)
    return bool((snapshot.now_s - since_s[waits] > patience_s).any())


def extended(
    predicted_s: NDArray[np.int64], elapsed_s: NDArray[np.int64], extension: str = "stepwise"
) -> NDArray[np.int64]:
    """Run times, extended beyond the elapsed time.

    Args:
        predicted_s: (n,) >= 1.
        elapsed_s: (n,) time since the start.
        extension: `stepwise`: a minute more, then 15, 30, 60, ... minutes more than that (Tsafrir,
            Etsion and Feitelson 2007); `second`: it ends within the next second, always
            (Galleguillos et al. 2020).
    """
    over_s = elapsed_s - predicted_s
    if extension == "second":
        return np.where(over_s >= 0, elapsed_s + 1, predicted_s)
    steps = np.maximum(over_s - FIRST_S, 0) // SECOND_S + 1  # 2^k > steps - 1 + a part
    doubled = np.exp2(np.floor(np.log2(steps)) + 1).astype(np.int64)
    more_s = np.where(over_s < FIRST_S, FIRST_S, FIRST_S + SECOND_S * (doubled - 1))
    return np.where(over_s >= 0, predicted_s + more_s, predicted_s)


def _predict(snapshot: Snapshot, learnt: Learning, expectation: Expectation) -> Prediction | None:
    """One cycle: judges and learns from ended jobs, follows running ones, predicts."""
    take_ended(snapshot.ended, learnt, expectation, dialect_of(snapshot))
    predicted_s = _follow(snapshot, learnt, expectation)
    running = snapshot.running
    elapsed_s = np.maximum(snapshot.now_s - running.start_s, 0)
    end_s = np.where(
        predicted_s > 0,
        running.start_s + extended(np.maximum(predicted_s, 1), elapsed_s, expectation.extension),
        0,
    )
    if learnt.table is not snapshot.jobs:  # in most cycles the queue is unchanged
        traits = expectation.waiting(snapshot)
        learnt.waiting = dict(zip(snapshot.jobs.id.tolist(), traits, strict=True))
        learnt.table = snapshot.jobs
    if _impatient(snapshot, expectation.patience_s):
        return None
    guess: dict[Any, int] = {}
    run_s = np.zeros(len(snapshot.jobs), dtype=np.int64)
    for row, trait in enumerate(learnt.waiting.values()):
        expected = guess.get(trait)
        if expected is None:
            expected = guess[trait] = expectation.expect(learnt, trait)
        run_s[row] = expected
    return Prediction(expectation.name, run_s, end_s)


def take_ended(
    ended: EndedTable, learnt: Learning, expectation: Expectation, dialect: Dialect
) -> None:
    """Compares predictions with the run times of ended jobs, then learns from these."""
    if not len(ended):
        return
    ids, run_s = ended.id.tolist(), (ended.end_s - ended.start_s).tolist()
    limit_s = np.where(ended.time_limit_s > 0, ended.time_limit_s, UNLIMITED_S).tolist()
    start_s, endings = ended.start_s.tolist(), ended.ending.tolist()
    unseen: list[int] = []
    traits: list[Any] = [None] * len(ids)
    predicted: list[int] = [0] * len(ids)
    for row, job_id in enumerate(ids):
        seen, trait = learnt.running.pop(job_id), learnt.traits.pop(job_id)
        if seen is not None and seen[0] == start_s[row]:
            predicted[row] = seen[1]
        traits[row] = _waited(learnt, job_id, dialect) if trait is None else trait
        if traits[row] is None:
            unseen.append(row)
    if unseen:
        for row, trait in zip(unseen, expectation.ended(ended, unseen), strict=True):
            traits[row] = trait
    for row, trait in enumerate(traits):
        if not Ending(endings[row]).by_itself:
            continue
        expected_s = min(predicted[row] or expectation.expect(learnt, trait) or limit_s[row],
                         limit_s[row])  # fmt: skip
        _judge(learnt, expected_s, run_s[row])
    # Judge all jobs of one second before learning from any.
    for row, trait in enumerate(traits):
        if Ending(endings[row]).by_itself:
            expectation.learn(learnt, trait, run_s[row])


def _judge(learnt: Learning, predicted_s: int, actual_s: int) -> None:
    learnt.judged += 1
    learnt.under += predicted_s < actual_s
    learnt.off_s += abs(predicted_s - actual_s)
    learnt.accuracy += min(predicted_s, actual_s) / max(predicted_s, actual_s, 1)


def _follow(snapshot: Snapshot, learnt: Learning, expectation: Expectation) -> NDArray[np.int64]:
    """(n_running,) the prediction of each running job; 0: none."""
    running, known = snapshot.running, learnt.running
    ids, starts = running.id.tolist(), running.start_s.tolist()
    # A row of nodes that are still being cleaned up has no end of its job.
    runs = (running.end_s > 0).tolist()
    found = [known.get(job_id) or _NOTHING for job_id in ids]
    fresh = [row for row, seen in enumerate(found) if runs[row] and seen[0] != starts[row]]
    if fresh:
        dialect = dialect_of(snapshot)
        traits = [_waited(learnt, ids[row], dialect) for row in fresh]
        unseen = [row for row, trait in zip(fresh, traits, strict=True) if trait is None]
        others = iter(expectation.running(snapshot, unseen))
        for row, trait in zip(fresh, traits, strict=True):
            own = next(others) if trait is None else trait
            learnt.traits[ids[row]] = own
            found[row] = known[ids[row]] = [starts[row], expectation.expect(learnt, own)]
    if len(known) > 2 * len(ids) + 1000:  # some left without a reported end
        still = set(ids)
        for job_id in known.in_order():
            if job_id not in still:
                known.pop(job_id)
                learnt.traits.pop(job_id)
    return np.array([seen[1] for seen in found], dtype=np.int64)


def _waited(learnt: Learning, job_id: str, dialect: Dialect) -> Any:
    """Returns the trait of a job as it waited; a task has that of its array."""
    trait = learnt.waiting.get(job_id)
    return learnt.waiting.get(dialect.array_of(job_id)) if trait is None else trait
