# SPDX-License-Identifier: Apache-2.0
"""Why a running malleable job changes or keeps its width; every cycle states this for each job.

Policies give codes and numbers; what answers operators makes sentences of them.
"""

from dataclasses import dataclass
from enum import IntEnum


class WidthCode(IntEnum):
    """The kind of a reason; the numbers are those of the wire (operator.proto)."""

    NONE = 0
    GROWS = 1
    SHRINKS = 2
    ADAPTING = 3
    """A change of its width is under way."""
    NO_LAUNCHER = 4
    HELD = 5
    """By an operator or its user."""
    RESTS = 6
    """Its last change failed a moment ago."""
    ELSEWHERE = 7
    """Its processes run on other nodes than it holds."""
    LIMIT = 8
    """`planning.resizes`, or its own `--no-resize`."""
    TOO_SOON = 9
    """Its last change was too short ago for the policy."""
    OTHER_ADAPTS = 10
    """The policy changes nothing while another job adapts."""
    ENDS_SOON = 11
    WIDEST = 12
    """It has as many nodes as it may."""
    NO_IDLE_NODES = 13
    """None that it could use."""
    PLANNED_NODES = 14
    """The idle nodes that it could use are planned for waiting jobs: a promise would be broken."""
    TOO_FEW_NODES = 15
    """Fewer than make up the next width that is worth it."""
    NO_GAIN = 16
    """No width recovers the cost of a change."""
    OTHERS_FIRST = 17
    """Other jobs get the idle nodes."""
    RULE = 18
    """A limit, FreePool, protection or reservation forbids what the policy proposed."""
    POLICY = 19
    """The policy resizes no running jobs."""


@dataclass(frozen=True, slots=True)
class WidthReason:
    """Why a job has its width.

    Attributes:
        nodes: width after the change; for TOO_FEW_NODES the next width; else 0.
        until_s: when it may be another one, Unix seconds; 0: not known.
    """

    job_id: str
    code: WidthCode
    nodes: int = 0
    until_s: int = 0
