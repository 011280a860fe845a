# SPDX-License-Identifier: Apache-2.0
"""No name of a person or a job survives, and every plan does."""

import dataclasses

import pytest

from bridge.lab.sim.recorded.anonymous import Pseudonyms
from bridge.lab.sim.recorded.rerun import moved, rerun
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Promises, State
from bridge.recording.recordings import Recording, decode, encode
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot

NAMES = ("alice", "bob", "physics", "chem", "secret-run", "other-run")
PLANNING = {
    "limits": [{"user": "alice", "resource": "cpus", "items": 4}],
    "free_pools": [
        {"name": "bobs", "resource": "cpus", "keep": 2,
         "access": [{"users": ["bob"]}, {"accounts": ["chem"]}]}
    ],
}  # fmt: skip


@pytest.fixture
def recording():
    snapshot = a_snapshot(
        nodes=3,
        jobs=[
            a_job(user=user, account=account, shared=True, cpus=2, limit_s=50)
            for user, account in (("alice", "physics"), ("bob", "chem"), ("alice", "chem")) * 3
        ],
        running=[a_running_job((0,), user="bob", account="chem")],
    )()
    snapshot.jobs.name[:] = "secret-run"
    snapshot.jobs.hold_text[:] = "says alice"
    nodes = dataclasses.replace(snapshot.nodes, state=("IDLE", "DOWN bob", "IDLE"))
    snapshot = dataclasses.replace(snapshot, nodes=nodes)
    snapshot.running.name[:] = "other-run"
    spec, promises = parse_policy("openccs"), Promises("openccs", {"1": 50})
    state = State(promises, {"last-two": Learnt(Layers({"alice": [10, 20]}))})
    plan = Decider(build(spec), State(promises), site=parse_site(PLANNING)).decide(snapshot)
    plan = dataclasses.replace(plan, notes=("alice did it",))
    origin = {"cluster": "physics", "trace": "x"}
    return Recording(snapshot, state, spec, 0, plan, origin, planning=PLANNING)


def test_no_name_survives(recording):
    assert b"alice" in _text(recording)
    text = _text(Pseudonyms().of(recording))
    for name in NAMES:
        assert name.encode() not in text, name


def test_the_same_starts_come_of_it(recording):
    nameless = decode(encode(Pseudonyms().of(recording)))
    assert moved(nameless.snapshot, recording.plan, rerun(nameless).plan) == []


def test_the_account_of_search_stays(recording):
    """It has ids and numbers; without it, another plan would come of the recording."""
    account = Learnt(Layers({"17": [1, 2, 3, 4, 5, 6, 7]}))
    learnt = {**recording.state.learnt, "search": account}
    with_account = dataclasses.replace(recording, state=State(Promises(), learnt))
    nameless = decode(encode(Pseudonyms().of(with_account)))
    assert dict(nameless.state.learnt_by("search").known) == dict(account.known)
    assert not nameless.state.learnt_by("last-two").known


def test_a_name_is_the_same_number_in_every_recording(recording):
    names = Pseudonyms()
    first, second = names.of(recording), names.of(recording)
    assert first.snapshot.jobs.user.tolist() == second.snapshot.jobs.user.tolist()
    assert first.snapshot.jobs.user[0] == first.snapshot.jobs.user[2] == "user1"
    assert first.snapshot.running.user[0] == first.snapshot.jobs.user[1]


def _text(recording):
    import gzip

    return gzip.decompress(encode(recording))
