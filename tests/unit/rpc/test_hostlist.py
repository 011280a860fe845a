# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.rpc.hostlist import NodeIndex

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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n3", "no node 'n3'"),
        ("n[1-3]", "no node 'n3'"),
        ("a[8-10]", "no node 'a8'"),
        ("n[1-", "brackets do not match"),
        ("n1]", "brackets do not match"),
        ("n[[1]]", "brackets do not match"),
        ("n[2-1]", "no range of numbers"),
        ("n[a]", "no range of numbers"),
        ("n[]", "no range of numbers"),
        ("n[1-2-3]", "no range of numbers"),
        ("n[²]", "no range of numbers"),
        (",n1", "empty name"),
        ("n1,,n2", "empty name"),
        ("n[1-99999999]", "more nodes than this cluster has"),
        ("r[0-9999]c[0-9999]", "more nodes than this cluster has"),
        ("n[" + "9" * 5000 + "]", "no range of numbers"),
        ("q" * 2_000_000, "hostlist too long"),
    ],
)
def test_refuses(nodes, text, problem):
    with pytest.raises(RequestError, match=problem) as caught:
        nodes.parse(text)
    assert len(str(caught.value)) < 300


def test_leaves_unknown_names_out_on_request(nodes):
    assert nodes.parse("n[1-5],gone,login", unknown_ok=True).tolist() == [0, 1, 5]


def test_a_text_that_names_everything_again_and_again_costs_little(nodes):
    assert len(nodes.parse(",".join(["n[1-2]"] * 100_000))) == 2


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
