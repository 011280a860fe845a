# SPDX-License-Identifier: Apache-2.0
"""Learns from pairs what a guest's application costs a host's application.

Rules
    1. A pair is learnt from when its guest is found to slow the host down, or found not to, every
       `QUIET_S` (`pair_bound.py`), and when it ends.
    2. If the application of an ended host is known from runs alone, and it had a guest for a good
       part of the run, the whole run is learnt from as well: the time lost is attributed to the
       time with the guest. This shows interference that CPU time does not, as on memory. It is done
       only if the application's run times alone differ little, by `ALIKE` at most: otherwise a
       longer run is no sign of harm.
    3. For the harm to the site, each of several guests counts for its part of the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from bridge.extensions.sharing.histories import application_of, history_of
from bridge.extensions.sharing.interference.estimates import MIN_RUNS, PairEstimates, deviation_s
from bridge.extensions.sharing.interference.records import EndedPair, PairRecords
from bridge.extensions.sharing.interference.running_pairs import RunningPairs
from bridge.extensions.sharing.pair_knowledge import CEILINGS, note
from bridge.extensions.sharing.pair_record import Pair, Suspicion
from bridge.extensions.sharing.site_harm import SiteHarm
from bridge.extensions.sharing.slowdown import NOISE, HostSlowdown, alone_rate, slowdown
from bridge.model.job import Ending
from bridge.model.learnt import Learning

QUIET_S: Final = 600
_MIN_SHARED: Final = 0.2
"""A good part of a run (rule 2)."""
ALIKE: Final = 2 * NOISE
"""Largest relative deviation of run times alone that make a single run comparable (rule 2)."""
_MUCH: Final = 0.10
"""From this harm on, an ended pair counts against higher ceilings, not for lower ones."""


class PairLearner:
    """Changes what is known of pairs of applications, and the harm to the site."""

    def __init__(
        self,
        pairs: RunningPairs,
        records: PairRecords,
        estimates: PairEstimates,
        learning: Learning,
        units: Sequence[int],
    ) -> None:
        """Starts without learning.

        Args:
            pairs: the hosts and guests.
            learning: the learning of pairs; is changed.
            units: in which slowdowns are measured, the preferred one first.
        """
        self._pairs, self._records, self._estimates = pairs, records, estimates
        self._learning, self._units, self.harm = learning, units, SiteHarm(learning)

    def learn(
        self, guest: int, pair: Pair, found: HostSlowdown, bound: float, cpus: float | None = None
    ) -> Pair:
        """Learns from a running pair; returns its new record.

        Args:
            cpus: that the guest used meanwhile, -1: not known; None: those since the host was
                measured beside it.
        """
        blame, now_s = pair.blame / 1000, self._pairs.now_s
        cpus = self._estimates.cpus_beside(guest) if cpus is None else cpus
        ceiling = CEILINGS[0] if pair.floor_s else pair.ceiling
        bad = found.at_least * blame > bound
        apps = self._pairs.pair_apps(guest)
        note(self._learning, apps, ceiling, found.mean * blame, cpus, bad=bad)
        self._note_harm(apps[0], found.mean, pair, now_s)
        return replace(pair, told_s=now_s)

    def confirm_suspicion(self, guest: int, pair: Pair) -> Pair:
        """Learns that a suspected guest has done the harm; returns the pair's new record."""
        if pair.suspicion is not None:
            self._note_suspicion(self._pairs.pair_apps(guest), pair, pair.suspicion)
        return replace(pair, suspicion=None)

    def learn_whole_runs(self) -> None:
        """Learns from the hosts that have ended (rule 2)."""
        ended = self._pairs.snapshot.ended
        for row, job_id in enumerate(ended.id.tolist()):
            times = self._records.times_beside(job_id)
            if times and ended.ending[row] == Ending.COMPLETED:
                self._learn_whole_run(int(ended.end_s[row] - ended.start_s[row]), times)

    def learn_ended(self, ended: EndedPair) -> None:
        """Learns from a pair that has ended (rule 1)."""
        pair, (host, _) = ended.pair, ended.apps
        if pair.suspicion is not None:
            self._note_suspicion(ended.apps, pair, pair.suspicion)
        apart = bool(pair.floor_s) or pair.comparison is not None
        history = history_of(self._learning, host)
        for rate in (pair.rates[unit] for unit in self._units if not apart):
            measured = self._records.rate_alone(ended.host_id, rate.unit)
            alone = alone_rate(measured, rate.unit, history)
            found = slowdown(alone, rate) if rate.at_s == pair.at_s else None
            if found is not None:
                harm = found.mean * pair.blame / 1000
                note(self._learning, ended.apps, pair.ceiling, harm, -1.0, bad=harm > _MUCH)
                self._note_harm(host, found.mean, pair, rate.at_s)
                break

    def _learn_whole_run(self, run_s: int, times: Mapping[tuple[str, str], Sequence[int]]) -> None:
        """Rule 2, of one host.

        Args:
            times: applications of host and guest to their time beside it (`records.py`).
        """
        together_s = sum(to_blame_ms for *_, to_blame_ms in times.values()) / 1000
        for apps, (seconds, _, ceiling, to_blame_ms) in times.items():
            host, to_blame_s = apps[0], to_blame_ms / 1000
            history = history_of(self._learning, host)
            if history is None or to_blame_s <= 0 or seconds < _MIN_SHARED * run_s:
                continue
            if history.runs < MIN_RUNS or deviation_s(history) > ALIKE * history.run_s:
                continue
            lost_s = min((run_s - history.run_s) * to_blame_s / together_s, 0.9 * to_blame_s)
            harm, blame = lost_s / (to_blame_s - lost_s), to_blame_s / seconds
            much = harm * blame > _MUCH
            note(self._learning, apps, ceiling, harm * blame, -1.0, bad=much)
            self.harm.add(application_of(host)[0], harm, to_blame_s)

    def _note_suspicion(self, apps: tuple[str, str], pair: Pair, suspicion: Suspicion) -> None:
        harm, blame = suspicion.harm_permille / 1000, pair.blame / 1000
        cpus = suspicion.guest_milli_cpus / 1000 if suspicion.guest_milli_cpus >= 0 else -1.0
        note(self._learning, apps, pair.ceiling, harm * blame, cpus, bad=True)
        if blame > 0:
            self.harm.add(application_of(apps[0])[0], harm, suspicion.lasted_s * blame)

    def _note_harm(self, app: str, harm: float, pair: Pair, until_s: int) -> None:
        """Counts the harm to the site, each guest for its part of the time (rule 3)."""
        if pair.blame > 0:
            lasted_s = (until_s - pair.untold_s) * pair.blame / 1000
            self.harm.add(application_of(app)[0], harm, lasted_s)
