# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.rpc.reported.hostlist import NodeIndex
from schedbridge_contracts.crosses import each
from tests.unit.model.test_hostlist import CASES

NAMES = (
    *("n1", "n2", "n9", "n10", "n11", "login", "r0c0", "r0c1", "r1c0", "r1c1"),
    *("a08", "a09", "a10", "x1-ib", "x2-ib"),
)


@pytest.fixture(scope="module")
def nodes():
    return NodeIndex(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("login", ["login"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[1-2]", ["n1", "n2"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[1,9-10],login", ["n1", "n9", "n10", "login"]),
        ("a[08-10]", ["a08", "a09", "a10"]),
        ("r[0-1]c[0-1]", ["r0c0", "r0c1", "r1c0", "r1c1"]),
        ("x[1-2]-ib", ["x1-ib", "x2-ib"]),
        ("n2,n1,n[1-2]", ["n1", "n2"]),
    ],
)
def test_reads(nodes, text, expected):
    assert [nodes.names[at] for at in nodes.parse(text)] == expected


@each(case=CASES)
def test_the_table_that_the_plugin_is_tested_with(case):
    text, names = case
    nodes = NodeIndex(tuple(dict.fromkeys(name for _, some in CASES for name in some.split())))
    if names == "!":
        with pytest.raises(RequestError):
            nodes.parse(text)
        return
    assert {nodes.names[at] for at in nodes.parse(text)} == set(names.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n3", "no node 'n3'"),
        ("n[1-3]", "no node 'n3'"),
        ("a[8-10]", "no node 'a8'"),
        ("n[1-", "brackets do not match"),
        ("n1]", "brackets do not match"),
        ("n[[1]]", "brackets do not match"),
        ("n[2-1]", "not a range of numbers"),
        ("n[a]", "not a range of numbers"),
        ("n[]", "not a range of numbers"),
        ("n[1-2-3]", "not a range of numbers"),
        ("n[²]", "not a range of numbers"),
        (",n1", "empty name"),
        ("n1,,n2", "empty name"),
        ("n[1-99999999]", "more nodes than this cluster has"),
        ("r[0-9999]c[0-9999]", "more nodes than this cluster has"),
        ("r[0-999999999999999999]c[0-999999999999999999]", "more nodes than this cluster has"),
        ("n[" + "9" * 5000 + "]", "not a range of numbers"),
        ("q" * 2_000_000, "hostlist too long"),
    ],
)
def test_refuses(nodes, text, problem):
    with pytest.raises(RequestError, match=problem) as caught:
        nodes.parse(text)
    assert len(str(caught.value)) < 300


def test_leaves_unknown_names_out_on_request(nodes):
    assert nodes.parse("n[1-5],gone,login", unknown_ok=True).tolist() == [0, 1, 5]


class Counted(dict):
    """Counts how often a name is looked up."""

    looked_up = 0

    def get(self, *args):
        self.looked_up += 1
        return super().get(*args)


def scattered(count, order=lambda name: name[::-1]):
    """Nodes of which no two that follow each other by number do so by index."""
    found = NodeIndex(sorted((f"n{at}" for at in range(count)), key=order))
    found.index = Counted(found.index)
    return found


@pytest.mark.parametrize("unknown_ok", [False, True])
@pytest.mark.parametrize("order", [lambda name: name[::-1], lambda name: int(name[1:])])
def test_a_text_that_names_everything_again_and_again_costs_little(unknown_ok, order):
    nodes = scattered(5000, order)
    text = ",".join(["n[0-4999]"] * 100_000)
    assert len(nodes.parse(text, unknown_ok=unknown_ok)) == 5000
    assert nodes.index.looked_up <= 20_000
    assert len(nodes.parse(text, unknown_ok=unknown_ok)) == 5000
    assert nodes.index.looked_up <= 20_000  # read once


@pytest.mark.parametrize("unknown_ok", [False, True])
def test_names_beyond_what_can_be_meant_are_not_looked_up(unknown_ok):
    nodes = scattered(5000)
    text = ",".join(f"n[0-{high}]" for high in range(1, 5000))
    for _ in range(2):
        with pytest.raises(RequestError, match="too often"):
            nodes.parse(text, unknown_ok=unknown_ok)
    assert nodes.index.looked_up <= 100_000


def test_what_is_remembered_is_bounded(nodes, monkeypatch):
    monkeypatch.setattr("bridge.rpc.reported.hostlist.MAX_CACHED_BYTES", 10_000)
    index = NodeIndex(NAMES)
    for count in range(1, 1000):
        index.parse(",".join(["n1"] * count), unknown_ok=bool(count % 2))
    assert sum(len(text) for text, _ in index._cache) < 10_000


@given(st.sets(st.integers(0, len(NAMES) - 1)))
def test_reads_back_what_it_writes(chosen):
    nodes = NodeIndex(NAMES)
    indexes = np.array(sorted(chosen), dtype=np.int32)
    assert nodes.parse(nodes.fold(indexes)).tolist() == indexes.tolist()


@given(st.text(alphabet="n0123456789[]-,x", max_size=30))
def test_any_text_is_read_or_refused(text):
    nodes = NodeIndex(NAMES)
    for unknown_ok in (False, True):
        try:
            found = nodes.parse(text, unknown_ok=unknown_ok)
        except RequestError:
            continue
        assert (np.diff(found) > 0).all()
