# SPDX-License-Identifier: Apache-2.0
"""What is kept of running hosts and pairs from cycle to cycle.

Terms
    rate alone      of a job without guest, in this run, by unit of work.
    pair            the record of a running guest and its host (`pair_record.py`).
    time beside     of a host and an application of guests: the seconds for which they ran together,
                    the time of the last observation, the guest's last ceiling, and the part of the
                    time for which the loss is attributed to the guest, ms.
    lost time       of a host: its start, the hosted time counted since, s, and what was lost of
                    it, ms (`bridge.extensions.sharing.lost_time`).

Rules
    1. The records are dropped when the jobs have left.
    2. Of the guests' applications beside one host, the time of at most `_MAX_BESIDE` is counted;
       the shortest is dropped. Few can have been there for a good part of the host's run.
"""

from dataclasses import dataclass
from typing import Final

from bridge.extensions.sharing.interference.running_pairs import RunningPairs
from bridge.extensions.sharing.kept_keys import APART, BESIDE
from bridge.extensions.sharing.pair_knowledge import CEILINGS
from bridge.extensions.sharing.pair_record import Pair
from bridge.extensions.sharing.slowdown import Rate
from bridge.model.learnt import Learning

_ALONE, _PAIR, _TIME, _LOST = "alone", "beside", "ran", "lost"
_MAX_BESIDE: Final = 32
_LONGEST_GAP_S: Final = 120
"""Maximum time between two observations of a pair; more does not count as time together."""


@dataclass(frozen=True)
class EndedPair:
    """A pair that does not run any more.

    Attributes:
        apps: applications of host and guest.
        pair: its last record.
    """

    host_id: str
    apps: tuple[str, str]
    pair: Pair


class PairRecords:
    """Reads and changes the records of one policy."""

    def __init__(self, pairs: RunningPairs, learning: Learning) -> None:
        """Starts without reading.

        Args:
            pairs: the hosts and guests that run.
            learning: the learning of the policy; is changed.
        """
        self._pairs, self._learning = pairs, learning
        self._kept = learning.running

    def rate_alone(self, job_id: str, unit: int) -> Rate | None:
        """The rate of a job without guest, in this run; None: nothing was measured."""
        numbers = self._kept.get(_key(_ALONE, job_id, str(unit)))
        return None if numbers is None else Rate.of_numbers(numbers)

    def keep_rate_alone(self, job_id: str, rate: Rate) -> None:
        self._kept[_key(_ALONE, job_id, str(rate.unit))] = rate.numbers()

    def pair(self, guest: int) -> Pair | None:
        """The record of a running guest and its host; None: there is none."""
        numbers = self._kept.get(self._pair_key(guest))
        return None if numbers is None else Pair.of_numbers(numbers)

    def keep(self, guest: int, pair: Pair) -> None:
        self._kept[self._pair_key(guest)] = pair.numbers()

    def keep_started(self, guest_id: str, host_id: str, apps: tuple[str, str], pair: Pair) -> None:
        """Keeps the record of a guest that is about to start; `apps`: of host and guest."""
        self._kept[_key(_PAIR, guest_id, host_id, BESIDE.join(apps))] = pair.numbers()

    def take_ended(self) -> list[EndedPair]:
        """Removes the pairs that have ended, and returns them (rule 1)."""
        running = {self._pair_key(guest) for guest in self._pairs.host_of}
        found = []
        for key in self._kept.in_order():
            if key.startswith(_PAIR + APART) and key not in running:
                _, _, host_id, rest = key.split(APART, 3)
                host, _, guest = rest.partition(BESIDE)
                numbers = self._kept.pop(key)
                pair = Pair.of_numbers(numbers) if numbers else Pair(CEILINGS[0], 0)
                found.append(EndedPair(host_id, (host, guest), pair))
        return found

    def drop_left(self) -> None:
        """Drops what is kept of hosts that have left (rule 1)."""
        here = set(self._pairs.snapshot.running.id.tolist())
        for key in self._kept.in_order():
            kind, _, rest = key.partition(APART)
            if kind in (_ALONE, _TIME, _LOST) and rest.partition(APART)[0] not in here:
                self._kept.pop(key)

    def lost(self, host_id: str, start_s: int) -> tuple[int, int]:
        """The lost time of a host since this start (see Terms)."""
        began_s, counted_s, lost_ms = self._kept.get(_key(_LOST, host_id)) or (start_s, 0, 0)
        return (counted_s, lost_ms) if began_s == start_s else (0, 0)

    def keep_lost(self, host_id: str, start_s: int, counted_s: int, lost_ms: int) -> None:
        """Keeps it instead of that of a former start."""
        self._kept[_key(_LOST, host_id)] = [start_s, counted_s, lost_ms]

    def beside_s(self, guest: int) -> int:
        """The time for which guests of this application have run beside the host, s."""
        return (self._kept.get(self._time_key(guest)) or [0])[0]

    def times_beside(self, host_id: str) -> dict[tuple[str, str], list[int]]:
        """Applications of a host and its guests to their time beside it (see Terms)."""
        start = _key(_TIME, host_id, "")
        found = {}
        for key in self._kept.in_order():
            if key.startswith(start):
                host, _, guest = key.removeprefix(start).partition(BESIDE)
                found[host, guest] = self._kept[key]
        return found

    def count_time(self, guest: int, ceiling: int, blame: float) -> None:
        """Counts the time since the last observation (rule 2).

        Args:
            blame: share of the host's loss attributed to the guest, 0 to 1.
        """
        key, now_s = self._time_key(guest), self._pairs.now_s
        if key not in self._kept:
            self._drop_shortest(_key(_TIME, self._host_id(guest), ""))
        seconds, last_s, _, to_blame_ms = self._kept.get(key) or [0, now_s, 0, 0]
        gap_s = min(max(now_s - last_s, 0), _LONGEST_GAP_S)
        to_blame_ms += round(1000 * gap_s * blame)
        self._kept[key] = [seconds + gap_s, now_s, ceiling, to_blame_ms]

    def _drop_shortest(self, start: str) -> None:
        """Drops the application with the shortest time if there are too many (rule 2)."""
        keys = [key for key in self._kept.in_order() if key.startswith(start)]
        if len(keys) >= _MAX_BESIDE:
            self._kept.pop(min(keys, key=lambda key: self._kept[key][0]))

    def _host_id(self, guest: int) -> str:
        return str(self._pairs.snapshot.running.id[self._pairs.host_of[guest]])

    def _pair_key(self, guest: int) -> str:
        guest_id, apps = str(self._pairs.snapshot.running.id[guest]), self._pairs.pair_apps(guest)
        return _key(_PAIR, guest_id, self._host_id(guest), BESIDE.join(apps))

    def _time_key(self, guest: int) -> str:
        return _key(_TIME, self._host_id(guest), BESIDE.join(self._pairs.pair_apps(guest)))


def _key(*parts: str) -> str:
    return APART.join(parts)
