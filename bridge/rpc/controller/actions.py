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

from typing import Final

from bridge.rpc.reported.features import Feature

DECIDED: Final = tuple(feature.value for feature in Feature)
"""What this service may decide, for its hello."""
