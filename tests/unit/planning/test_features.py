# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import RequestError
from bridge.planning.features import parse_features


@pytest.mark.parametrize(
    ("text", "features", "matches"),
    [
        ("fast", {"fast"}, True),
        ("fast", {"slow"}, False),
        ("fast&gpu", {"fast", "gpu"}, True),
        ("fast&gpu", {"fast"}, False),
        ("a|b", {"b"}, True),
        ("fast&(a|b)", {"fast", "b"}, True),
        ("fast&(a|b)", {"b"}, False),
        # equal rank, left to right: (a|b)&c
        ("a|b&c", {"a"}, False),
        ("a|b&c", {"b", "c"}, True),
        (" a & b ", {"a", "b"}, True),
    ],
)
def test_a_constraint_selects_nodes(text, features, matches):
    (alternative,) = parse_features(text)
    assert alternative(frozenset(features)) is matches


def test_brackets_give_one_alternative_each():
    first, second = parse_features("[rack1|rack2]")
    assert first(frozenset({"rack1"}))
    assert not first(frozenset({"rack2"}))
    assert second(frozenset({"rack2"}))


@pytest.mark.parametrize(
    ("text", "position"),
    [("a&", 2), ("&a", 0), ("(a|b", 4), ("a)", 1), ("rack1*2", 5), ("", 0), ("a&&b", 2)],
)
def test_an_error_points_at_the_character(text, position):
    with pytest.raises(RequestError) as caught:
        parse_features(text)
    assert caught.value.position == position


def test_absurd_lengths_are_refused():
    with pytest.raises(RequestError):
        parse_features("a&" * 4000 + "a")
