# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import RequestError
from bridge.lab.sim.workloads.node_requests import NodeRequest, parse_node_request


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("4", NodeRequest(4, 4, 1)),
        ("2:ppn=8", NodeRequest(2, 16, 8)),
        ("ppn=8", NodeRequest(1, 8, 8)),
        ("1:ppn=1.5:brno", NodeRequest(1, 1, 1, ("brno",))),
        ("1:ppn=0.5", NodeRequest(1, 1, 1)),
        (
            "1:ppn=64:x86_64:cl_zewura#excl",
            NodeRequest(1, 64, 64, ("x86_64", "cl_zewura"), exclusive=True),
        ),
        ("1:ppn=2:big:big:big", NodeRequest(1, 2, 2, ("big",))),
        ("node3.example.org:ppn=4:brno", NodeRequest(1, 4, 4, ("node3", "brno"))),
        ("1:ppn=4:host=node3.example.org", NodeRequest(1, 4, 4, ("node3",))),
        ("1:^node3.example.org:^slow:ppn=4", NodeRequest(1, 4, 4, (), ("node3", "slow"))),
        ("1:ppn=4:mem=2gb", NodeRequest(1, 4, 4)),
        ("1:ppn=1+3:ppn=2", NodeRequest(4, 7, 2)),
    ],
)
def test_a_specification_is_read(text, requested):
    assert parse_node_request(text) == requested


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("2:ppn=x", 6, "'x' is not a number"),
        ("2:ppn=", 6, "'' is not a number"),
        ("1+2:ppn=-1", 8, "'-1' is not a number"),
        ("99999999999", 0, "is not a number"),
        ("", 0, "a property is missing"),
        ("1:ppn=2::a", 8, "a property is missing"),
        ("1:^", 2, "a property is missing"),
        ("1:host=", 2, "a property is missing"),
        ("0:ppn=2", 0, "asks for no node"),
        ("1:ppn=2#shared", 8, "'shared' is not known"),
    ],
)
def test_what_is_none_is_refused_at_its_character(text, position, says):
    with pytest.raises(RequestError, match=says) as refused:
        parse_node_request(text)
    assert refused.value.position == position
