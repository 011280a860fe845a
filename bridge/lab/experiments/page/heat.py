# SPDX-License-Identifier: Apache-2.0
"""The heat map of policies and scenarios, as an HTML table: a colour, and the number in it.

Blue and orange are told apart with any colour vision, and their lightness falls with the distance
from zero, so that strong cells are dark in print as well. Text is dark on all of them.
"""

from collections.abc import Sequence
from html import escape
from math import log
from typing import Final

from bridge.lab.experiments.statistics.compare import ComparisonRow, Findings
from bridge.lab.experiments.statistics.verdict import Finding, signed

_MIDDLE: Final = (0xF3, 0xF4, 0xF5)
_BLUE: Final = (0x62, 0xAD, 0xDC)
_ORANGE: Final = (0xF0, 0x9A, 0x4A)
_FULL: Final = log(2.0)
"""Twice, or half, the baseline's value has the full colour."""


def heat_map(findings: Findings, quantity: str) -> str:
    """The table of one measure over all jobs; empty if there is none."""
    table = findings.of(quantity)
    if not table:
        return ""
    scenarios = list(dict.fromkeys(one.scenario for one in table))
    contestants = list(dict.fromkeys(one.contestant for one in table))
    found = {(one.scenario, one.contestant): one for one in table}
    head = "".join(f"<th>{escape(one.name)}</th>" for one in contestants)
    rows = "".join(
        f"<tr><td>{escape(scenario.name)}</td>"
        + "".join(_cell(found.get((scenario, contestant))) for contestant in contestants)
        + "</tr>"
        for scenario in scenarios
    )
    title = table[0].quantity.title
    return (
        f'<h3>{escape(title[0].upper() + title[1:])}</h3><div class="wide"><table class="heat">'
        f"<tr><th></th>{head}</tr>{rows}</table></div>"
    )


def _cell(one: ComparisonRow | None) -> str:
    if one is None:
        return '<td class="none">not run</td>'
    text = escape(signed(one.quantity, one.estimate))
    if one.verdict.outcome in (Finding.BETTER, Finding.WORSE):
        text = f"<b>{text}</b>"
    elif one.verdict.outcome is Finding.TOO_FEW:
        text = f"({text})"
    title = escape(one.verdict.words)
    return f'<td style="background:{colour(_gain(one))}" title="{title}">{text}</td>'


def _gain(one: ComparisonRow) -> float:
    """-1 (much worse) to 1 (much better), by the logarithm of the ratio."""
    estimate = one.estimate
    if not estimate.relative:
        return 0.0 if not estimate.difference else float(one.quantity.better)
    ratio = max(1 + estimate.difference, 0.01)
    return max(-1.0, min(1.0, one.quantity.better * log(ratio) / _FULL))


def colour(gain: float) -> str:
    """The colour of a gain, -1 to 1."""
    end, share = (_BLUE, gain) if gain > 0 else (_ORANGE, -gain)
    mixed: Sequence[int] = [
        round(near + share * (far - near)) for near, far in zip(_MIDDLE, end, strict=True)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)
