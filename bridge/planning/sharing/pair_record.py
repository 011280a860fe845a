# SPDX-License-Identifier: Apache-2.0
"""What is kept of a running guest and its host (`bridge.planning.sharing.pair_watch`)."""

from dataclasses import dataclass
from typing import Final

from bridge.planning.sharing.slowdown import CPU_MS, PROGRESS, Rate

NOT_MEASURED: Final = Rate(CPU_MS, 0, 0), Rate(PROGRESS, 0, 0)


@dataclass(frozen=True)
class Pair:
    """A guest beside its host, kept from cycle to cycle.

    Attributes:
        ceiling: of the guest.
        since_s: start of the host's measurement beside it; later if the measurement was restarted.
        floor_s: since when the guest is held to the floor; 0: it is not.
        told_s: when the pair was last learnt from.
        guest_cpu_ms: CPU time of the guest at `since_s`; -1: not known.
        blame: share of the host's loss attributed to this guest, in thousandths.
        unknown, counted_s: measurements since the slowdown was last known, and the last of them.
        rates: of the host's work beside it, in `CPU_MS` and in `PROGRESS`.
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

    def numbers(self) -> list[int]:
        """For the state: whole numbers."""
        return [
            self.ceiling, self.since_s, self.floor_s, self.told_s, self.guest_cpu_ms, self.blame,
            self.unknown, self.counted_s, *self.rates[0].numbers(), *self.rates[1].numbers(),
        ]  # fmt: skip

    @staticmethod
    def of_numbers(numbers: list[int]) -> "Pair":
        """The inverse."""
        ceiling, since_s, floor_s, told_s, guest_cpu_ms, blame, unknown, counted_s, *rest = numbers
        half = len(rest) // 2
        rates = Rate.of_numbers(rest[:half]), Rate.of_numbers(rest[half:])
        return Pair(
            ceiling, since_s, floor_s, told_s, guest_cpu_ms, blame, unknown, counted_s, rates
        )

    @property
    def at_s(self) -> int:
        """The last measurement of the host beside it; 0: none."""
        return max(rate.at_s for rate in self.rates)

    @property
    def untold_s(self) -> int:
        """Start of the measurements that have not been learnt from yet."""
        return max(self.since_s, self.told_s)
