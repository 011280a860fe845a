# SPDX-License-Identifier: Apache-2.0
"""Orders of users and administrators against the limits on resizes: who may, and what is said."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bridge.errors import ControllerError
from bridge.extensions.elastic.operators.answers import change_width, elastic_reply
from bridge.extensions.elastic.resizing.world import World
from bridge.model.rules.limits import ConsumerKind
from bridge.model.rules.resize_limits import ResizeLimit
from bridge.model.rules.site import Site
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from tests.unit.extensions.elastic.resizing.test_odd_launchers import Planted, a_runtime, a_world

ALL = {"apart_s": 600, "per_hour": 1, "extra_nodes": 1}


class Desk:
    """A runtime, what it has published, and a site with one limit."""

    def __init__(self, *, keeps=False, requested=3, partition="", **limit):
        kind = ConsumerKind.PARTITION if partition else ConsumerKind.USER
        self.site = Site(resizes=(ResizeLimit(kind, partition or "ann", **limit),))
        self.lock = contextlib.nullcontext()
        self.resizing = a_runtime(Planted())
        self.keeps, self.requested = keeps, requested
        self.sees(a_world())

    def sees(self, world):
        running = replace(
            world.running, keeps_nodes=np.array([self.keeps]),
            requested_nodes=np.array([self.requested]),
        )  # fmt: skip
        self.resizing.see(world := replace(world, running=running))
        shown = self.resizing.overlay(world)
        self.published = SimpleNamespace(
            snapshot=shown, nodes=NodeIndex(world.nodes.names), plan=SimpleNamespace(widths=())
        )

    def resized(self, world, wanted):
        self.resizing.begin(World(world), "m", wanted, by_s=0, end_s=0, reason="")

    def asks(self, width, user="ann"):
        change_width(self, pb.ChangeWidthRequest(job_id="m", width=width), user=user, uid="")


def refused(desk, width, user="ann"):
    with pytest.raises(ControllerError) as said:
        desk.asks(width, user)
    assert not desk.resizing.wishes
    return str(said.value)


@pytest.mark.parametrize("user", ["ann", ""], ids=["its user", "an administrator"])
@pytest.mark.parametrize("width", [2, 4])
def test_a_job_that_is_never_resized_is_not_by_anybodys_order(user, width):
    assert "--no-resize" in refused(Desk(keeps=True), width, user)
    said = refused(Desk(partition="batch", never=True), width, user)
    assert said == (
        "job m keeps its nodes: by planning.resizes jobs of partition batch are never resized"
    )


def test_a_user_is_told_the_limit_and_how_to_mend_it_and_an_administrator_may_exceed_it():
    desk = Desk(extra_nodes=1)
    assert refused(desk, 5) == (
        "job m asked for 3 nodes and may have 1 more (planning.resizes: extra_nodes): "
        "ask for 4 at most"
    )
    desk.asks(4)
    desk.resizing.wishes.clear()
    desk.resizing.held.add("m")  # held: the policies' limit of 0 nodes is not the job's own
    desk.sees(a_world())
    assert "ask for 4 at most" in refused(desk, 5)
    desk.asks(5, "")
    assert desk.resizing.wishes == {"m": (5, True)}


def test_how_often_counts_changes_of_all_kinds_and_no_shrink_is_refused():
    desk = Desk(**ALL | {"extra_nodes": None})
    desk.resized(a_world(), ("n1", "n2"))
    desk.sees(a_world())
    desk.resizing.reset()
    desk.sees(a_world((0, 1), now_s=1010))
    said = refused(desk, 4)
    assert "1 times within an hour, of 1 (planning.resizes: per_hour)" in said
    desk.asks(1)
    desk.resizing.wishes.clear()
    desk.sees(a_world((0, 1), now_s=1010 + 3600))
    desk.asks(4)


def test_when_a_job_may_grow_again_is_said_in_seconds():
    desk = Desk(apart_s=600)
    desk.resized(a_world(), ("n1", "n2"))
    desk.resizing.reset()
    desk.sees(a_world((0, 1), now_s=1100))
    assert refused(desk, 4).endswith(
        "has changed its width 100 s ago, and grows after 600 s (planning.resizes: apart): "
        "ask again in 500 s"
    )
    desk.sees(a_world((0, 1), now_s=900))  # the clock was set back
    assert refused(desk, 4).endswith("ask again in 500 s")
    desk.sees(a_world((0, 1), now_s=1400))
    desk.asks(4)


def test_nothing_is_told_of_anothers_job():
    for other in ("eve", "an", "anna", "nn", "Ann", "a", "ann "):
        assert refused(Desk(keeps=True), 2, other) == f"job m is ann's, not {other}'s"


def test_why_a_job_keeps_its_nodes_is_shown():
    (job,) = elastic_reply(Desk(keeps=True), 1).jobs
    assert job.never == "keeps its nodes: it was submitted with --no-resize"
    (job,) = elastic_reply(Desk(), 1).jobs
    assert not job.never
