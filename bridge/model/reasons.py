# SPDX-License-Identifier: Apache-2.0
"""Why a job does not start now: a value every pending job leaves the cycle with."""

from dataclasses import dataclass
from enum import IntEnum


class ReasonCode(IntEnum):
    """What stands in the way; the numbers are those of the wire (scheduler.proto)."""

    NONE = 0
    RESOURCES = 1
    PRIORITY = 2
    LICENCES = 3
    RESERVATION = 4
    BEGIN_TIME = 5
    HELD = 6
    DEPENDENCY = 7
    LIMIT = 8
    ARRAY_LIMIT = 9
    PARTITION = 10
    NEVER = 11
    BAD_REQUEST = 12
    REFUSED = 13
    OTHER = 14
    MAINTENANCE = 15
    NODES_DOWN = 16


@dataclass(frozen=True, slots=True)
class Reason:
    """A code for machines and one short sentence for people."""

    code: ReasonCode
    text: str

    @property
    def can_ever_run(self) -> bool:
        """False when no change of load, only a change of the job or the cluster, helps."""
        return self.code not in (ReasonCode.NEVER, ReasonCode.BAD_REQUEST)
