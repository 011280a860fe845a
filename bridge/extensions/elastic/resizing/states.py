# SPDX-License-Identifier: Apache-2.0
"""The states of a job that is being resized, and their deadlines.

| state | waits for | then |
|---|---|---|
| GRANTING | the controller: the job holds the new nodes | ADDING |
| ADDING | the launcher: processes run on the new nodes | RUNNING; refused: VACATING the new nodes |
| LEAVING | the launcher: its processes have left the nodes | VACATING; refused: RUNNING |
| VACATING | the agents: no process is left on the nodes | RELEASING |
| RELEASING | the controller: the job holds the remaining nodes | RUNNING |

RUNNING is the absence of a change. The six steps of the paper (Chadha, John, Gerndt, HiPC 2020,
sec. IV-C) are beside these states in docs/design/0009-elastic-jobs.md.
"""

from dataclasses import dataclass
from enum import StrEnum

from bridge.extensions.elastic.resizing.launchers import Names


class ResizeState(StrEnum):
    """The state of a change: what it waits for."""

    GRANTING = "granting"
    ADDING = "adding"
    LEAVING = "leaving"
    VACATING = "vacating"
    RELEASING = "releasing"


@dataclass(frozen=True)
class Deadlines:
    """Longest time in each state, s.

    Attributes:
        withdraw_s: for the answer to a withdrawn order, in ADDING and LEAVING.
        rest_s: how long a job keeps its nodes after a failed resize.
    """

    grant_s: int = 30
    add_s: int = 120
    grace_s: int = 60
    vacate_s: int = 30
    release_s: int = 30
    withdraw_s: int = 30
    rest_s: int = 60

    def of(self, state: ResizeState) -> int:
        return {
            ResizeState.GRANTING: self.grant_s,
            ResizeState.ADDING: self.add_s,
            ResizeState.LEAVING: self.grace_s,
            ResizeState.VACATING: self.vacate_s,
            ResizeState.RELEASING: self.release_s,
        }[state]


@dataclass
class OpenResize:
    """One resize under way.

    Attributes:
        id: its permanent name for the launcher.
        before: nodes that the job held when it was decided.
        wanted: nodes that were decided.
        target: nodes that the job will hold: `wanted`, or `before` once a growth has failed.
        until_s: the state's deadline, Unix seconds.
        by_s: when nodes that the job gives back are expected to be free.
        end_s: when the job ends at its new width; 0: as before.
        reason: the reason of the decision, for display.
        serial: the serial of the launcher's attachment that has the order; -1: none.
        withdrawn: the launcher was told so.
        decision: number of the decision that the controller has not answered yet; 0: none.
        again_s: no message to the controller before this, Unix seconds.
        version: the version of the job, as last reported.
        looks: how often it was examined in this state.
        refusal: why the launcher refused a growth that is being undone.
    """

    id: str
    job_id: str
    user: str
    state: ResizeState
    before: Names
    wanted: Names
    target: Names
    until_s: int
    by_s: int
    end_s: int = 0
    reason: str = ""
    serial: int = -1
    withdrawn: bool = False
    decision: int = 0
    again_s: int = 0
    version: int = 0
    looks: int = 0
    refusal: str = ""

    @property
    def grows(self) -> bool:
        """It adds nodes; also while a failed growth gives them back."""
        return len(self.wanted) > len(self.before)

    @property
    def failed(self) -> bool:
        """A growth that is being undone."""
        return self.target != self.wanted
