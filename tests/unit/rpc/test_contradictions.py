# SPDX-License-Identifier: Apache-2.0
"""Reports that contradict themselves or the cluster: requested again once, then taken or not."""

import re

import pytest

from bridge.errors import SnapshotError
from bridge.registry import PRESETS, build
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_node,
    a_running_job,
    a_session,
    jobs_of,
    partitions,
    some_nodes,
)

BROKEN = {
    "more licences than anybody has": {
        "licences": pb.Licences(items=[pb.Licence(name=f"l{at}") for at in range(10_001)])
    },
    "time before time": {"now_s": -1},
    "time beyond time": {"now_s": 1 << 50},
    "more partitions than anybody has": {
        "partitions": pb.Partitions(items=[pb.Partition(name=f"p{at}") for at in range(10_001)])
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_contradiction_asks_for_everything_once_then_says_so(broken):
    session = a_session(a_full([a_job("1"), a_running_job("2", "n3")]))
    assert not session.apply(a_delta(1, **broken))
    assert session.generation == 0
    assert session.full_requests == 1
    with pytest.raises(SnapshotError):
        session.apply(a_full(**broken))
    assert session.generation == 0
    assert session.apply(a_full([a_job("1")]))  # and is forgiven
    assert list(jobs_of(session)) == ["1"]


ODD = {
    "more CPUs than there are": (
        {"jobs": [a_running_job("9", "n3")]}, "jobs hold 8 of 4 cpus there",
    ),
    "a node that shrank": ({"nodes": [a_node("n3", cpus=2)]}, "jobs hold 4 of 2 cpus there"),
    "more memory": ({"jobs": [a_running_job("9", "n2", memory_mib=1001)]}, "1001 of 1000 mem_mib"),
    "two exclusive jobs": (
        {"jobs": [a_running_job(name, "n2", cpus=1, exclusive=True) for name in ("8", "9")]},
        "2 exclusive jobs hold it",
    ),
    "start in the future": (
        {"jobs": [a_running_job("9", "n2", start_s=NOW_S + 90, end_s=NOW_S + 150)]},
        r"jobs\[9\].allocation.start_s is in the future",
    ),
    "end before start": (
        {"jobs": [a_running_job("9", "n2", start_s=NOW_S - 10, end_s=NOW_S - 20)]},
        r"jobs\[9\].allocation.end_s is before its start",
    ),
    "unknown partition": (
        {"jobs": [a_running_job("9", "n2", partition="gone")]},
        r"jobs\[9\].allocation.partition is unknown",
    ),
    "node without CPUs": ({"nodes": [a_node("n9", cpus=0)]}, None),
    "partition of unknown nodes": (
        {"partitions": partitions("n[0-9]")}, "more nodes than this cluster has",
    ),
    "reservation that ends first": (
        {"reservations": pb.Reservations(items=[pb.Reservation(name="r", start_s=5, end_s=5)])},
        r"reservations\[r\].end_s is not after its start",
    ),
    "reservation of unknown nodes": (
        {
            "reservations": pb.Reservations(
                items=[pb.Reservation(name="r", start_s=5, end_s=6, nodes="n99,n1")]
            )
        },
        "no node 'n99'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("odd", "says"), ODD.values(), ids=ODD)
def test_what_is_odd_is_asked_for_once_and_then_planned_with(odd, says, caplog):
    """Every preset plans the rest: one odd thing stops nobody."""
    base = {"jobs": [a_job("1"), a_running_job("2", "n3")], "nodes": some_nodes()}
    session = a_session(a_full(base["jobs"], base["nodes"]))
    caplog.clear()
    assert session.apply(a_delta(1, **odd)) == (says is None)
    if says is not None:
        assert re.search(f"requesting a full report: .*{says}", caplog.text)
    nodes = {node.name: node for node in (*base["nodes"], *odd.get("nodes", ()))}
    whole = odd | {"jobs": base["jobs"] + odd.get("jobs", []), "nodes": list(nodes.values())}
    assert session.apply(a_full(generation=2, **whole))
    # It is known from now on.
    assert session.apply(a_delta(2, now_s=NOW_S + 1000, nodes=[a_node("n0", state="NEW")]))
    assert session.full_requests == (says is not None)
    snapshot = session.snapshot()[0]
    assert (snapshot.running.start_s <= snapshot.now_s).all()
    for preset in ("slurm-like", "easy", "conservative", "openccs"):
        decider = Decider(build(PRESETS[preset]))
        plan = decider.decide(snapshot)
        assert decider.failures == 0
        assert plan.start_s[0] == snapshot.now_s


def test_a_first_contradiction_in_a_full_report_is_asked_again():
    session = a_session()
    bad = a_full([a_job("9")], now_s=-1)
    assert not session.apply(bad)
    with pytest.raises(SnapshotError, match="not a time"):
        session.apply(bad)
