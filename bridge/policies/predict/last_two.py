# SPDX-License-Identifier: Apache-2.0
"""Predicts the mean run time of the user's last two jobs.

Rules
    1. The prediction is the mean run time of the user's two jobs that ended last, at most the job's
       limit. With one such job it is that job's run time, without any the limit.
    2. The prediction of a job that exceeds it is extended by 1 minute, then 15, 30, 60 and so on,
       at most to its limit (`extension: stepwise`). With `second` the job is expected to end within
       the next second.
    3. While an eligible job has waited for longer than `patience_s`, time limits are used.

Source: D. Tsafrir, Y. Etsion, D. G. Feitelson, Backfilling using system-generated predictions
rather than user runtime estimates, IEEE TPDS 18(6), 2007; `second` as the running jobs of
Galleguillos, Kiziltan, Soto, CP 2020. The patience is ours.
Deviates: patience, without which wide jobs wait very long (docs/PREDICTIONS.md); null is as in the
source. The last two jobs are the last to end, whenever they were submitted. Waiting jobs are
predicted in every cycle; running jobs keep the prediction with which they started.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bridge.model.job import EndedTable
from bridge.model.learnt import Learning
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.run_times import Expectation


@dataclass(frozen=True)
class LastTwo(Expectation):
    """The mean of the user's last two run times.

    Attributes: see `Expectation`; `patience_s` null is as in the source.
    """

    name: ClassVar[str] = "last-two"

    def waiting(self, snapshot: Snapshot) -> Sequence[str]:
        users: list[str] = snapshot.jobs.user.tolist()
        return users

    def running(self, snapshot: Snapshot, rows: Sequence[int]) -> Sequence[str]:
        return [snapshot.running.user[row] for row in rows]

    def ended(self, ended: EndedTable, rows: Sequence[int]) -> Sequence[str]:
        return [ended.user[row] for row in rows]

    def expect(self, learnt: Learning, trait: str) -> int:
        """The mean, rounded down; at least a second."""
        last = learnt.known.get(trait)
        return max(sum(last) // len(last), 1) if last else 0

    def learn(self, learnt: Learning, trait: str, run_s: int) -> None:
        """Forgets all but the last one, and adds this."""
        learnt.learn(trait, trait, [*(learnt.known.get(trait) or ())[-1:], run_s])
