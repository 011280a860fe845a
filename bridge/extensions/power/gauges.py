# SPDX-License-Identifier: Apache-2.0
"""System power and its bounds on the page of metrics."""

from collections.abc import Mapping
from math import inf
from typing import Final

from bridge.extensions.power.planning.estimates import system_power
from bridge.extensions.power.rules import NO_UPPER_W, power_of
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot

_LOWER, _UPPER = "power_lower_watts", "power_upper_watts"


class PowerGauges:
    """See `bridge.extensions.service_port.Gauges`."""

    texts: Final[Mapping[str, str]] = {
        _LOWER: "Lower bound of system power; 0: none",
        _UPPER: "Upper bound of system power; +Inf: none",
        "power_estimate_watts": "System power in the last snapshot, upper estimate",
    }

    def value(self, name: str, snapshot: Snapshot | None, site: Site) -> float:
        """A bound that is in force, or the estimate."""
        rules = power_of(site)
        if rules is None or snapshot is None:
            return inf if name == _UPPER else 0.0
        lower_w, upper_w = rules.corridor.at(snapshot.now_s)
        if name == _LOWER:
            return float(lower_w)
        if name == _UPPER:
            return inf if upper_w == NO_UPPER_W else float(upper_w)
        return float(system_power(rules, snapshot)[1])
