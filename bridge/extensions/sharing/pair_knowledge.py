# SPDX-License-Identifier: Apache-2.0
"""What was learnt about pairs of applications: the harm to the host at each ceiling of the guest.

Terms
    ceiling     the most CPU time that a guest may use, in percent of the CPUs of its nodes. Its
                weight is always the least, so it gets only what its host leaves.
    harm        slowdown of the host (`slowdown.py`) while the guest had a ceiling.
    belief mean and half-width of the expected harm.

Rules
    1. Without observations, the expected harm of a ceiling is that measured for guests with the
       least weight: a few percent, more for busy hosts and high ceilings (`_prior`).
    2. Observations of the host's application with any guest correct that, and observations of this
       pair correct it further. Each level counts as `STRENGTH` observations for the next one.
    3. The half-width is one standard deviation of a single observation, over the root of the
       number of observations, those of rule 2 included.
    4. A ceiling is admissible if mean and half-width together are within the host's bound.
    5. An observation within the bound also counts for all lower ceilings, and one above the bound
       for all higher ceilings.
    6. A pair that ran short of memory exceeds any bound at any ceiling. This says nothing about its
       host's application with other guests.
    7. Counts are at most `MEMORY`, so later observations weigh 1 / `MEMORY` and old ones are
       forgotten slowly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bridge.extensions.sharing.kept_keys import APART, BESIDE, keep
from bridge.model.layers import Draft
from bridge.model.learnt import Learning

PAIRS: Final = "pairs"
"""The name of this part of `bridge.ports.State.learnt`."""
CEILINGS: Final = (10, 25, 50, 75, 100)
STRENGTH: Final = 2.0
MEMORY: Final = 30.0
DEVIATION: Final = 0.05
"""Standard deviation of a single observation: noise alone is 5 to 10 %."""
LARGEST_HARM: Final = 5.0
_PAIR, _HOST = "pair", "with-any"
_UNIT: Final = 1_000_000
Known = Mapping[str, list[int]] | Draft[list[int]]


@dataclass(frozen=True)
class Seen:
    """Observations of one ceiling: how many, and their mean harm."""

    count: float = 0.0
    harm: float = 0.0

    def after(self, harm: float) -> "Seen":
        """Adds an observation (rule 7)."""
        count = min(self.count + 1, MEMORY)
        return Seen(count, self.harm + (harm - self.harm) / count)


@dataclass(frozen=True)
class Belief:
    """What the harm of a ceiling is expected to be."""

    mean: float
    half_width: float

    @property
    def at_most(self) -> float:
        """The upper end."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Entry:
    """The observations of a pair, or of a host's application with any guest.

    Attributes:
        seen: for each of `CEILINGS`.
        guest_cpus: CPUs that guests used, a mean; -1: not measured.
    """

    seen: tuple[Seen, ...] = (Seen(),) * len(CEILINGS)
    guest_cpus: float = -1.0

    def after(self, ceiling: int, harm: float, guest_cpus: float, *, bad: bool) -> "Entry":
        """Adds an observation (rule 5)."""
        seen = tuple(
            each.after(harm) if (at >= ceiling if bad else at <= ceiling) else each
            for at, each in zip(CEILINGS, self.seen, strict=True)
        )
        if guest_cpus < 0:
            return Entry(seen, self.guest_cpus)
        maximum = max(each.count for each in seen)
        before = self.guest_cpus if self.guest_cpus >= 0 else guest_cpus
        return Entry(seen, before + (guest_cpus - before) / max(maximum, 1.0))

    def numbers(self) -> list[int]:
        """Whole numbers for the state of the policy."""
        pairs = ((round(one.count * 1000), round(one.harm * _UNIT)) for one in self.seen)
        return [*(number for pair in pairs for number in pair), round(self.guest_cpus * 1000)]

    @staticmethod
    def of_numbers(numbers: list[int] | None) -> "Entry":
        """The inverse; no observations if the numbers are missing or invalid."""
        if numbers is None or len(numbers) != 2 * len(CEILINGS) + 1:
            return Entry()
        seen = tuple(
            Seen(
                min(max(count, 0) / 1000, MEMORY),
                min(max(harm / _UNIT, -1.0), LARGEST_HARM),
            )
            for count, harm in zip(numbers[:-1:2], numbers[1:-1:2], strict=True)
        )
        return Entry(seen, max(numbers[-1] / 1000, -1.0))


def pair_key(host: str, guest: str) -> str:
    return _PAIR + APART + host + BESIDE + guest


def host_key(host: str) -> str:
    """The key of a host's application with any guest."""
    return _HOST + APART + host


def pairs_in(known: Mapping[str, list[int]]) -> dict[tuple[str, str], Entry]:
    start = _PAIR + APART
    return {
        (host, guest): Entry.of_numbers(numbers)
        for key, numbers in known.items()
        if key.startswith(start)
        for host, _, guest in [key.removeprefix(start).partition(BESIDE)]
    }


def hosts_in(known: Mapping[str, list[int]]) -> dict[str, Entry]:
    """All known applications of hosts, with any guest."""
    start = _HOST + APART
    return {
        key.removeprefix(start): Entry.of_numbers(numbers)
        for key, numbers in known.items()
        if key.startswith(start)
    }


def note(
    learning: Learning,
    apps: tuple[str, str],
    ceiling: int,
    harm: float,
    guest_cpus: float,
    *,
    bad: bool,
) -> None:
    """Learns from one observation.

    Args:
        learning: is changed.
        ceiling: one of `CEILINGS`.
        guest_cpus: that the guest used meanwhile; -1: not measured.
        bad: the host's bound was passed.
    """
    harm = min(max(harm, -1.0), LARGEST_HARM)
    for key in (pair_key(*apps), host_key(apps[0])):
        entry = Entry.of_numbers(learning.known.get(key))
        keep(learning, key, entry.after(ceiling, harm, guest_cpus, bad=bad).numbers())


def note_short_of_memory(learning: Learning, apps: tuple[str, str]) -> None:
    """Learns that a host and a guest were short of memory together (rule 6)."""
    key = pair_key(*apps)
    entry = Entry.of_numbers(learning.known.get(key))
    keep(learning, key, entry.after(CEILINGS[0], LARGEST_HARM, -1.0, bad=True).numbers())


def belief(known: Known, apps: tuple[str, str], ceiling: int, busy: float) -> Belief:
    """What the harm of a ceiling is expected to be (rules 1 to 3).

    Args:
        ceiling: one of `CEILINGS`.
        busy: share of the CPUs that the host uses, 0 to 1.
    """
    at = CEILINGS.index(ceiling)
    mean, count = _prior(ceiling, busy), STRENGTH
    for key in (host_key(apps[0]), pair_key(*apps)):
        seen = Entry.of_numbers(known.get(key)).seen[at]
        mean = (STRENGTH * mean + seen.count * seen.harm) / (STRENGTH + seen.count)
        count += seen.count
    return Belief(mean, DEVIATION / math.sqrt(count))


def highest_admissible(
    known: Known, apps: tuple[str, str], busy: float, bound: float, below: int = 101
) -> int | None:
    """The highest ceiling within a bound (rule 4); None: there is none.

    Args:
        busy: share of the CPUs that the host uses.
        below: only ceilings below this one.
    """
    allowed = [
        ceiling
        for ceiling in CEILINGS
        if ceiling < below and belief(known, apps, ceiling, busy).at_most <= bound
    ]
    return max(allowed, default=None)


def _prior(ceiling: int, busy: float) -> float:
    """Rule 1: on two cores such guests cost busy hosts up to 9 %, and idle ones nothing."""
    return (0.01 + 0.04 * ceiling / 100) * (0.5 + min(max(busy, 0.0), 1.0) / 2)
