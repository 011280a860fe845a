# SPDX-License-Identifier: Apache-2.0
"""Powers as text: `1700W`, `2.5kW`, `0.8MW`, a number of watts; and back."""

import re
from decimal import Decimal

from bridge.extensions.power.corridor.corridor_entries import MAX_W
from bridge.extensions.power.rules import NO_UPPER_W

NONE = "none"
"""An upper bound that lifts all below it."""

_WATTS = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([km]?)(w?)", re.IGNORECASE)
_FACTOR = {"": 1, "k": 10**3, "m": 10**6}
_FORMS = "1700W, 2.5kW or 0.8MW"


def watts(value: object, unit: str = "") -> int:
    """Reads a power.

    Args:
        value: text, or a number of watts.
        unit: "W", "kW" or "MW", for a number without one.

    Returns:
        W.

    Raises:
        ValueError: it is something else, no whole number of watts, or more than `MAX_W`.
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    text = str(value).strip() if plain or isinstance(value, str) else ""
    found = _WATTS.fullmatch(text)
    if found is None:
        raise ValueError(f"must be a power as {_FORMS}, not {value!r:.60}")
    if found[2] == "m" and found[3] == "W":
        raise ValueError(f"is in milliwatts ('{text:.60}'): write MW for megawatts")
    stated = found[2] + found[3] if found[2] or found[3] else unit
    amount = Decimal(found[1]) * _FACTOR[stated.lower().removesuffix("w")]
    if amount != amount.to_integral_value():
        raise ValueError(f"'{text:.60}' is not a whole number of watts")
    if amount > MAX_W:
        raise ValueError(f"'{text:.60}' is more than {MAX_W} W")
    return int(amount)


def upper_watts(value: object) -> int:
    """Reads an upper bound: a power, or `none` for no bound.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str) and value.strip().lower() == NONE:
        return NO_UPPER_W
    return watts(value)


def corridor(text: str) -> tuple[int, int]:
    """Reads `1700W-2500W`, `1.7-2.5kW` or `1700W-none`: lower and upper bound, W.

    Raises:
        ValueError: it is something else, or the lower bound lies above the upper one.
    """
    lower, dash, upper = (part.strip() for part in text.partition("-"))
    if not (lower and dash and upper):
        raise ValueError(f"must be two powers as 1700W-2500W, not '{text:.60}'")
    upper_w = upper_watts(upper)
    unit = re.sub(r"[\d.\s]", "", upper) if upper.lower() != NONE else ""
    lower_w = watts(lower, unit)
    if lower_w > upper_w:
        raise ValueError(f"'{text:.60}' has its lower bound above the upper one")
    return lower_w, upper_w


def shown_watts(amount_w: int) -> str:
    """Writes a power so that it can be read again, without loss: `1700 W`, `2.5 kW`, `none`."""
    if amount_w == NO_UPPER_W:
        return NONE
    for factor, unit in ((10**6, "MW"), (10**3, "kW")):
        if amount_w >= 10 * factor or (amount_w >= factor and amount_w % (factor // 10) == 0):
            number = Decimal(amount_w) / factor
            if -number.as_tuple().exponent <= 3:  # type: ignore[operator]
                return f"{number.normalize():f} {unit}"
    return f"{amount_w} W"
