# SPDX-License-Identifier: Apache-2.0
"""What is kept of a running guest and its host (`bridge.extensions.sharing.interference`)."""

from dataclasses import dataclass
from typing import Final

from bridge.extensions.sharing.comparison import Comparison
from bridge.extensions.sharing.slowdown import CPU_MS, PROGRESS, Rate

_NONE: Final = -1
NOT_MEASURED: Final = Rate(CPU_MS, 0, 0), Rate(PROGRESS, 0, 0)


@dataclass(frozen=True)
class Suspicion:
    """The host's bound was passed; it is not yet known whether the guest is the cause.

    Attributes:
        guest_milli_cpus: that the guest used meanwhile; -1: not known.
        lasted_s: time for which it was measured.
    """

    harm_permille: int
    guest_milli_cpus: int
    lasted_s: int


@dataclass(frozen=True)
class Pair:
    """A guest beside its host, kept from cycle to cycle.

    Attributes:
        since_s: start of the host's measurement beside it; later if the measurement was restarted.
        floor_s: since when the guest is held to the floor; 0: it is not.
        told_s: when the pair was last learnt from.
        guest_cpu_ms: CPU time of the guest at `since_s`; -1: not known.
        blame: share of the host's loss attributed to this guest, in thousandths.
        unknown, counted_s: measurements since the slowdown was last known, and the last of them.
        rates: rates of the host's work beside it, in `CPU_MS` and in `PROGRESS`.
        compare_s: instant of the next comparison (`comparison.py`).
        suspicion: None: there is none.
        comparison: the comparison under way; None: there is none.
    """

    ceiling: int
    since_s: int
    floor_s: int = 0
    told_s: int = 0
    guest_cpu_ms: int = -1
    blame: int = 1000
    unknown: int = 0
    counted_s: int = 0
    rates: tuple[Rate, Rate] = NOT_MEASURED
    compare_s: int = 0
    suspicion: Suspicion | None = None
    comparison: Comparison | None = None

    def numbers(self) -> list[int]:
        """Whole numbers for the state of the policy."""
        doubt = self.suspicion or Suspicion(_NONE, _NONE, 0)
        return [
            self.ceiling, self.since_s, self.floor_s, self.told_s, self.guest_cpu_ms, self.blame,
            self.unknown, self.counted_s, self.compare_s,
            doubt.harm_permille, doubt.guest_milli_cpus, doubt.lasted_s,
            *self.rates[0].numbers(), *self.rates[1].numbers(),
            *(self.comparison.numbers() if self.comparison else ()),
        ]  # fmt: skip

    @staticmethod
    def of_numbers(numbers: list[int]) -> "Pair":
        ceiling, since_s, floor_s, told_s, guest_cpu_ms, blame, unknown, counted_s = numbers[:8]
        compare_s, *doubt = numbers[8:12]
        first, second, comparison = numbers[12:19], numbers[19:26], numbers[26:]
        return Pair(
            ceiling, since_s, floor_s, told_s, guest_cpu_ms, blame, unknown, counted_s,
            (Rate.of_numbers(first), Rate.of_numbers(second)),
            compare_s,
            None if doubt[0] < 0 else Suspicion(*doubt),
            Comparison.of_numbers(comparison) if comparison else None,
        )  # fmt: skip

    @property
    def at_s(self) -> int:
        """The last measurement of the host beside it; 0: none."""
        return max(rate.at_s for rate in self.rates)

    @property
    def untold_s(self) -> int:
        """Start of the measurements that have not been learnt from yet."""
        return max(self.since_s, self.told_s)
