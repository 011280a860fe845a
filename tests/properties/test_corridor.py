# SPDX-License-Identifier: Apache-2.0
"""The corridor that entries come to, against a reading of them second by second."""

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry, OperatorEntry
from bridge.extensions.power.corridor.entry_log import Author, EntryLog, Wish
from bridge.extensions.power.corridor.resolve import (
    Entries,
    corridor_at,
    in_force,
    resolve,
    sources_at,
    steps,
)
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.model.rules.limits import ALWAYS, Validity
from bridge.units import DAY_S, NEVER
from tests.properties.naive_rules import opens

FROM_S, SPAN_S = 1_500_000_000 // DAY_S * DAY_S, 7200  # far from a change of the clocks
BERLIN = "Europe/Berlin"

bounds = st.tuples(
    st.none() | st.integers(0, 9), st.none() | st.integers(0, 9) | st.just(NO_UPPER_W)
)
instants = st.integers(FROM_S - 600, FROM_S + SPAN_S + 600)
spans = st.tuples(instants, instants | st.just(NEVER)).filter(lambda span: span[0] < span[1])
crons = st.builds(
    lambda minute, hour, length: Validity(cron=f"{minute} {hour} * * *", length_s=60 * length),
    st.sampled_from(["0", "7", "*/20", "13,44"]),
    st.sampled_from(["*", "0", "1-2", "2", "23"]),
    st.integers(1, 90),
)
validities = st.just(ALWAYS) | crons | spans.map(lambda span: Validity(*span))
calendars = st.lists(
    st.builds(lambda pair, when: CalendarEntry("", *pair, when), bounds, validities), max_size=4
)
entered = st.lists(st.tuples(bounds, spans, st.booleans()), max_size=6)


def made(calendar, operators, timezone="UTC"):
    found = tuple(
        OperatorEntry(
            at + 1, "a", "b", FROM_S, span[0], span[1], *pair, removed_s=FROM_S if removed else 0
        )
        for at, (pair, span, removed) in enumerate(operators)
    )
    return Entries(tuple(calendar), found, timezone, 2 * DAY_S)


def naive(entries, second):
    """The bounds of one second: from the bottom, whatever is named replaces what was."""
    lower, upper = 0, NO_UPPER_W
    for entry in entries.calendar:
        when = entry.validity
        here = when.start_s <= second < when.end_s and (
            not when.cron or opens(when.cron, when.length_s, entries.timezone, second)
        )
        lower = entry.lower_w if here and entry.lower_w is not None else lower
        upper = entry.upper_w if here and entry.upper_w is not None else upper
    for entry in entries.entered:
        here = entry.start_s <= second < entry.end_s and not entry.removed_s
        lower = entry.lower_w if here and entry.lower_w is not None else lower
        upper = entry.upper_w if here and entry.upper_w is not None else upper
    return min(lower, upper), upper


@settings(max_examples=60)
@given(calendars, entered, st.sampled_from(["UTC", BERLIN]), st.data())
def test_every_second_has_the_bounds_of_the_topmost_entries(calendar, operators, timezone, data):
    entries = made(calendar, operators, timezone)
    corridor = corridor_at(entries, FROM_S + 5)
    edges = {edge for _, span, _ in operators for edge in span} | set(corridor.starts_s)
    near = [at + by for at in edges for by in (-1, 0, 1) if FROM_S <= at + by < FROM_S + SPAN_S]
    some = data.draw(st.lists(st.integers(FROM_S, FROM_S + SPAN_S - 1), max_size=8))
    every = range(FROM_S, FROM_S + SPAN_S, 600)
    for second in (*near, *some, *every):
        assert corridor.at(second) == naive(entries, second), second - FROM_S


@settings(max_examples=60)
@given(calendars, entered)
def test_steps_are_as_few_as_can_be_and_tell_the_next_change(calendar, operators):
    corridor = corridor_at(made(calendar, operators), FROM_S)
    pairs = list(zip(corridor.lower_w, corridor.upper_w, strict=True))
    assert all(one != other for one, other in pairwise(pairs))
    now_s = FROM_S + 100
    following = corridor.next_change_s(now_s)
    if following == NEVER:
        assert corridor.at(now_s) == corridor.at(NEVER - 1)
    else:
        assert following > now_s
        assert corridor.at(following - 1) == corridor.at(now_s) != corridor.at(following)
    shown = list(steps(corridor, now_s, now_s + SPAN_S))
    assert shown[0][0] == now_s
    assert shown[-1][1] == now_s + SPAN_S
    for start, end, lower, upper in shown:
        assert start < end
        assert corridor.at(start) == corridor.at(end - 1) == (lower, upper)


@settings(max_examples=60)
@given(calendars, entered, st.integers(0, SPAN_S))
def test_the_sources_of_a_bound_name_it(calendar, operators, after_s):
    entries = made(calendar, operators)
    lower, upper = sources_at(entries, FROM_S + after_s)
    expected = naive(entries, FROM_S + after_s)
    maximum = NO_UPPER_W if upper is None else upper.upper_w
    minimum = 0 if lower is None else lower.lower_w
    assert (min(minimum, maximum), maximum) == expected
    for source in (lower, upper):
        assert source is None or in_force(source, "UTC", FROM_S + after_s)


@settings(max_examples=60)
@given(calendars, entered, bounds.filter(lambda pair: pair != (None, None)), spans)
def test_removing_an_entry_restores_what_was_below(calendar, operators, pair, span):
    author = Author("a", "b")
    if None not in pair and pair[0] > pair[1]:
        pair = pair[::-1]
    before = made(calendar, operators)
    entry_log = EntryLog(before.entered, len(before.entered) + 1)
    on_top, added = entry_log.add([Wish(*span, *pair)], author, FROM_S)
    if not added:
        return  # it was over before
    removed, gone = on_top.remove(added[0].id, author, FROM_S)
    restored, _ = removed.restore(gone.id, author, FROM_S)
    found = [
        resolve(Entries(tuple(calendar), each.entries), FROM_S, FROM_S + SPAN_S)
        for each in (entry_log, on_top, removed, restored)
    ]
    assert found[0] == found[2]
    assert found[1] == found[3]
    if span[0] <= FROM_S + 60 < span[1]:
        naming = found[1].at(FROM_S + 60)
        assert pair[1] is None or naming[1] == pair[1]


def test_the_corridor_is_the_same_all_day():
    entries = made([CalendarEntry("", None, 5, Validity(cron="0 7 * * *", length_s=3600))], [])
    first = corridor_at(entries, FROM_S)
    assert corridor_at(entries, FROM_S + DAY_S - 1) == first
    assert corridor_at(entries, FROM_S + DAY_S) != first


def test_the_wall_clock_counts_where_clocks_change():
    def at(text):
        return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(BERLIN)).timestamp())

    night = CalendarEntry("night", None, 5, Validity(cron="0 22 * * *", length_s=8 * 3600))
    entries = Entries((night,), (), BERLIN, 3 * DAY_S)
    forward = resolve(entries, at("2018-03-24T12:00"), at("2018-03-26T12:00"))
    assert [forward.starts_s[1:], forward.upper_w] == [
        (at("2018-03-24T22:00"), at("2018-03-25T06:00"), at("2018-03-25T22:00"),
         at("2018-03-26T06:00")),
        (NO_UPPER_W, 5, NO_UPPER_W, 5, NO_UPPER_W),
    ]  # fmt: skip
    assert forward.starts_s[2] - forward.starts_s[1] == 7 * 3600
    back = resolve(entries, at("2018-10-27T12:00"), at("2018-10-28T12:00"))
    assert back.starts_s[2] - back.starts_s[1] == 9 * 3600
