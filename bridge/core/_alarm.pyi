# SPDX-License-Identifier: Apache-2.0
"""Alarms, which tell kernels to return early; the rules of ``_core.pyi`` hold.

Kernels are limited by steps that they count: the same problem has the same answer on any machine
under any load. Services have deadlines and pass an alarm; simulations and tests do not.
"""

class Alarm:
    """Becomes true at some time, and remains true."""

    def rung(self) -> bool:
        """Whether it is true."""

class ClockAlarm(Alarm):
    """An alarm by the wall clock, for services and benchmarks only."""

    def __init__(self, after_us: int) -> None:
        """Becomes true this many microseconds from now.

        Raises:
            ValueError: it lies in the past, or years away.
        """
