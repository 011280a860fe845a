# SPDX-License-Identifier: Apache-2.0
"""Alarms: what those who live by a clock hand to kernels; the rules of ``_core.pyi`` hold.

Kernels are bounded by steps that they count: the same question has the same answer on any machine
at any load. Services have deadlines, and hand an alarm in; simulations and tests have none.
"""

class Alarm:
    """Rings at some time, and goes on ringing."""

    def rung(self) -> bool:
        """Whether it does."""

class ClockAlarm(Alarm):
    """An alarm by the wall clock: for services and benchmarks alone."""

    def __init__(self, after_us: int) -> None:
        """Rings so many microseconds from now on.

        Raises:
            ValueError: it lies in the past, or years away.
        """
