# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.planning.requests.features import parse_features


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
    [
        ("a&", 2),
        ("&a", 0),
        ("(a|b", 4),
        ("a)", 1),
        ("rack1*2", 5),
        ("", 0),
        ("a&&b", 2),
        ("a b", 1),
        ("(a b", 2),
        ("(a", 2),
    ],
)
def test_an_error_points_at_the_character(text, position):
    with pytest.raises(RequestError) as caught:
        parse_features(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("&".join(["a"] * 2000), True),
        ("|".join(["b"] * 1999 + ["a"]), True),
        ("(" * 2000 + "a" + ")" * 2000, True),
        ("(a&" * 1000 + "b" + ")" * 1000, False),
    ],
)
def test_an_expression_may_be_as_deep_as_it_is_long(text, matches):
    (alternative,) = parse_features(text)
    assert alternative(frozenset({"a"})) is matches


def test_alternatives_are_counted_once_and_bounded():
    assert len(parse_features("[" + "|".join(["a", "b"] * 900) + "]")) == 2
    with pytest.raises(RequestError, match="more than 64 alternatives"):
        parse_features("[" + "|".join(f"a{i}" for i in range(65)) + "]")


@given(st.text(alphabet="ab&|()[]* ", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        alternatives = parse_features(text)
    except RequestError:
        return
    for alternative in alternatives:
        alternative(frozenset("a"))


def test_absurd_lengths_are_refused():
    with pytest.raises(RequestError):
        parse_features("a&" * 4000 + "a")


def test_a_long_chain_is_no_deep_one():
    """As any user may write it: `sbatch -C a&a&a&...`."""
    (all_of,) = parse_features("a" + "&a" * 2000)
    assert all_of(frozenset({"a"}))
    assert not all_of(frozenset())
    (mixed,) = parse_features("a|b&c|d" + "&c" * 2000)
    for features in ("a", "b", "c", "d", "ac", "dc", "bd", ""):
        has = set(features)
        expected = ((("a" in has or "b" in has) and "c" in has) or "d" in has) and "c" in has
        assert mixed(frozenset(has)) is expected
