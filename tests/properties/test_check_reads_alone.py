# SPDX-License-Identifier: Apache-2.0
"""The check's own readings of site rules and requests agree with those of the planners."""

import random
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from bridge.check import features
from bridge.check import validity as checked_validity
from bridge.errors import RequestError
from bridge.model.rules.limits import Validity
from bridge.planning.requests.features import parse_features
from bridge.planning.site_rules import validity as planned_validity
from bridge.units import DAY_S, NEVER
from schedbridge_contracts.crosses import each

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
MINUTES = ("0", "*/20", "5,50", "30-32", "*", "15", "45")
HOURS = ("*", "2", "1,2", "*/7", "22-23", "0")
DAYS = ("* * *", "* * sun", "* * 1-5", "13 * *", "L * *", "* */5 *", "* * fri#2", "1,15 * mon")
LENGTHS_S = (60, 900, 3600, 10 * 3600, 40 * 3600, 9 * DAY_S)


def a_validity(rng: random.Random, from_s: int) -> Validity:
    cron = " ".join((rng.choice(MINUTES), rng.choice(HOURS), rng.choice(DAYS)))
    start_s = rng.choice((0, 0, from_s + rng.randrange(20 * DAY_S)))
    end_s = rng.choice((NEVER, NEVER, from_s + rng.randrange(40 * DAY_S)))
    return Validity(start_s, end_s, rng.choice(("", cron, cron, cron)), rng.choice(LENGTHS_S))


def merged(windows: np.ndarray, from_s: int) -> list[list[int]]:
    """How long a window has been open does not matter, nor where one follows another at once."""
    found: list[list[int]] = []
    for begin, end in windows.clip(min=from_s).tolist():
        if found and begin <= found[-1][1]:
            found[-1][1] = end
        else:
            found.append([begin, end])
    return found


@each(seed=range(10))
def test_validities_are_in_force_at_the_same_seconds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        zone = rng.choice(ZONES)
        changes = datetime(2026, rng.choice((3, 4, 10, 11, 7)), 1, tzinfo=ZoneInfo("UTC"))
        from_s = int(changes.timestamp()) + rng.randrange(-10 * DAY_S, 30 * DAY_S)
        validity = a_validity(rng, from_s)
        requested = (validity, zone, from_s, from_s + rng.choice((DAY_S, 10 * DAY_S, 60 * DAY_S)))
        mine, theirs = checked_validity.windows(*requested), planned_validity.windows(*requested)
        assert merged(mine, from_s) == merged(theirs, from_s), requested


@pytest.mark.parametrize(
    ("day", "cron", "shown"),
    [
        ("2018-03-25", "30 2 * * *", ("03:00", "03:30")),  # the clock is set from 2 to 3
        ("2018-10-28", "15 2 * * *", ("02:15", "03:15")),  # and from 3 to 2: two hours
        ("2018-10-29", "15 2 * * *", ("02:15", "03:15")),
    ],
)
def test_openings_on_days_when_the_clock_is_set(day, cron, shown) -> None:
    zone = ZoneInfo("Europe/Berlin")
    begin_s = int(datetime.fromisoformat(day).replace(tzinfo=zone).timestamp())
    validity = Validity(cron=cron, length_s=3600)
    found = checked_validity.windows(validity, zone.key, begin_s, begin_s + DAY_S)
    assert tuple(f"{datetime.fromtimestamp(at, zone):%H:%M}" for at in found[0].tolist()) == shown


def checked(text: str, nodes: list[frozenset[str]]) -> list[list[bool]]:
    """The nodes that meet each condition of an expression, as the check reads it."""
    return [features.matching(one, nodes).tolist() for one in features.alternatives(text)]


def an_expression(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(1, 4)):
        nested = depth < 3 and rng.random() < 0.3
        parts.append(f"({an_expression(rng, depth + 1)})" if nested else rng.choice("abcd"))
    return parts[0] + "".join(rng.choice(("&", "|", " & ")) + part for part in parts[1:])


@each(seed=range(5))
def test_feature_expressions_are_met_by_the_same_nodes(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [frozenset(name for at, name in enumerate("abcd") if n >> at & 1) for n in range(16)]
    refused = 0
    for _ in range(200):
        text = an_expression(rng)
        if rng.random() < 0.3:  # damage
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(("", "&", "(", ")", "*", "a")) + text[at + 1 :]
        if rng.random() < 0.2:
            text = "[" + text.replace("(", "").replace(")", "") + "]"
        try:
            expected = [[matches(node) for node in nodes] for matches in parse_features(text)]
        except RequestError:
            refused += 1
            with pytest.raises(RequestError):
                checked(text, nodes)
            continue
        assert checked(text, nodes) == expected, text
    assert refused
