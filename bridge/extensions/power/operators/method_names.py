# SPDX-License-Identifier: Apache-2.0
"""By which names the operators' process reaches power in the service's process."""

from typing import Final

CORRIDOR: Final = "Corridor"
"""A change of the corridor, by the method of the same name."""
EVENTS: Final = "Events"
"""A change of the corridor by an event of demand response."""
CURVES: Final = "Curves"
"""A read of metered nodes' power by load."""
