# SPDX-License-Identifier: Apache-2.0
"""What decisions can ask of a controller: one table for the service's side of the wire.

| action | of | made by |
|---|---|---|
| start | a pending job | `announcements.py` |
| planned_start, pending | a pending job | `announcements.py` |
| start with `choice` | a pending job | `announcements.py`, `offers.py` |
| resize, quota | a running job | `adjustments.py` |
| reserve, unreserve | no job | `orders.py` |

A controller names in its hello the features that it has. Whatever needs one that it lacks is not
planned: jobs count as malleable only for a controller that can resize them. So nothing has to be
taken out of a plan afterwards. The plugin has the same table in `bridge/shim/actions.c`.
"""

from enum import StrEnum
from typing import Final


class Feature(StrEnum):
    """What a controller can carry out, in the words of the hello."""

    START = "start"
    PLANNED_START = "planned_start"
    PENDING_REASON = "pending_reason"
    CHOICE = "choice"
    """Chooses a job's nodes itself, among those it is given."""
    RESIZE = "resize"
    QUOTA = "quota"
    RESERVE = "reserve"
    RESERVE_LICENCES = "reserve_licences"


DECIDED: Final = tuple(feature.value for feature in Feature)
"""What this service may decide, for its hello."""
