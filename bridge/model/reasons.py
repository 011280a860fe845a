# SPDX-License-Identifier: Apache-2.0
"""Why a job does not start now; every cycle gives each such job a reason."""

from dataclasses import dataclass
from enum import IntEnum


class ReasonCode(IntEnum):
    """The kind of a reason; the numbers are those of the wire (scheduler.proto)."""

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
    POWER = 17


@dataclass(frozen=True, slots=True)
class Reason:
    """A code for programs and one short sentence for users."""

    code: ReasonCode
    text: str

    @property
    def can_ever_run(self) -> bool:
        """False if the job cannot start unless the job or the cluster is changed."""
        return self.code not in (ReasonCode.NEVER, ReasonCode.BAD_REQUEST)
