# SPDX-License-Identifier: Apache-2.0
"""Monitors the pairs of a snapshot: puts measurements, estimates and what is learnt together.

A cycle learns from runs that have ended, drops the records of jobs that have left, and measures the
hosts that run.
"""

from collections.abc import Sequence

from bridge.extensions.sharing.histories import applications, follow
from bridge.extensions.sharing.interference.estimates import PairEstimates
from bridge.extensions.sharing.interference.measurements import Measurements
from bridge.extensions.sharing.interference.pair_learner import PairLearner
from bridge.extensions.sharing.interference.records import PairRecords
from bridge.extensions.sharing.interference.running_pairs import RunningPairs
from bridge.extensions.sharing.left_hosts import LeftHosts
from bridge.extensions.sharing.pair_knowledge import note_short_of_memory
from bridge.extensions.sharing.slowdown import UNITS
from bridge.model.learnt import Learning
from bridge.model.snapshot import Snapshot


class PairMonitor:
    """The pairs of one snapshot.

    Attributes:
        pairs: the hosts and guests.
        learner: changes what is known of pairs of applications.
        left: the guests that were requeued.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        learning: Learning,
        left: Learning,
        units: Sequence[int] = UNITS,
    ) -> None:
        """Starts without measuring or learning.

        Args:
            learning: the learning of pairs; is changed.
            left: marks of requeued guests (`left_hosts.NAME`); is changed.
            units: in which slowdowns are measured, the preferred one first.
        """
        self.snapshot, self.learning = snapshot, learning
        self.pairs = RunningPairs(snapshot, applications(snapshot, learning))
        self.records = PairRecords(self.pairs, learning)
        self.estimates = PairEstimates(self.pairs, self.records, learning, units)
        self.measurements = Measurements(self.pairs, self.records, self.estimates)
        self.learner = PairLearner(self.pairs, self.records, self.estimates, learning, units)
        self.left = LeftHosts(left, snapshot.now_s)

    def learn(self) -> None:
        """Takes in the ends and measurements of this snapshot."""
        self.learner.learn_whole_runs()
        follow(self.snapshot, self.pairs.apps, self.learning)
        for ended in self.records.take_ended():
            self.learner.learn_ended(ended)
        self.records.drop_left()
        here = (self.snapshot.running.id, self.snapshot.jobs.id)
        self.left.forget({job_id for ids in here for job_id in ids.tolist()})
        self.measurements.take()

    def sent_away(self, guest: int, *, short_of_memory: bool) -> None:
        """Records that a guest is to be requeued; counts once per run.

        Args:
            short_of_memory: whether that is why, which is learnt about the pair.
        """
        running = self.snapshot.running
        new = self.left.leaves(
            str(running.user[guest]), str(running.id[guest]), int(running.start_s[guest])
        )
        if new and short_of_memory:
            note_short_of_memory(self.learning, self.pairs.pair_apps(guest))
