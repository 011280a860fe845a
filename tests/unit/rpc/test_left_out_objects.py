# SPDX-License-Identifier: Apache-2.0
"""What a full report leaves out is requested again, as perhaps only the message was damaged."""

from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.irregularities import DOUBT_S, MAX_REPEAT_S
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_node,
    a_running_job,
    a_session,
    partitions,
    some_nodes,
)

LEFT_OUT = {
    "unknown hold": {"jobs": [a_job("8", hold=76), a_job("9", hold=77)]},
    "damaged id": {"jobs": [a_job("8 "), a_job("9\n")]},
    "unreadable allocation": {"jobs": [a_running_job("8", "n["), a_running_job("9", "n1,n[")]},
    "nameless nodes": {"nodes": [*some_nodes(4), a_node("n[8-9]"), a_node("")]},
    "a partition twice": {
        "partitions": pb.Partitions(items=[*partitions().items, pb.Partition(name="a")] * 2)
    },
    "an unreadable node list": {"partitions": partitions("n[")},
    "a nameless licence": {"licences": pb.Licences(items=[pb.Licence(), pb.Licence(name="l")])},
}


READABLE = {"jobs": [a_job("1"), a_job("8"), a_job("9")], "nodes": some_nodes(4)}


class Controller:
    """Sends a delta every 10 s, and a full report when it is requested."""

    def __init__(self, **told):
        self.told, self.now_s, self.generation = told, NOW_S, 1
        self.session = a_session(a_full(**told))

    def waits_s(self, count):
        """How long it was until each of the next requests for a full report."""
        waits = []
        while len(waits) < count:
            since_s = self.now_s
            while self.delta():
                assert self.now_s < since_s + 2 * MAX_REPEAT_S, "nothing is requested any more"
            waits.append(self.now_s - since_s)
            self.full()
        return waits

    def delta(self):
        self.now_s += 10
        self.generation += 1
        return self.session.apply(a_delta(self.generation - 1, now_s=self.now_s))

    def full(self):
        self.generation += 10
        assert self.session.apply(a_full(generation=self.generation, now_s=self.now_s, **self.told))


def test_what_is_left_out_is_requested_again_less_and_less_often():
    less_often = [DOUBT_S * 2**n for n in range(6)] + [MAX_REPEAT_S] * 3
    for what, odd in LEFT_OUT.items():
        controller = Controller(**{"jobs": [a_job("1")], **odd})
        assert controller.waits_s(9) == less_often, what
        controller.told = READABLE
        controller.waits_s(1)
        assert all(controller.delta() for _ in range(MAX_REPEAT_S // 5)), what
        # The next object that cannot be read is requested again as soon as the first one was.
        controller.told = {"jobs": [a_job("1")], **odd}
        controller.full()
        assert controller.waits_s(3) == less_often[:3], what


def test_nodes_that_are_not_defined_yet_are_no_reason_to_ask():
    controller = Controller(partitions=partitions("n[0-7]"))
    assert all(controller.delta() for _ in range(MAX_REPEAT_S // 5))


def test_a_full_report_that_leaves_out_jobs_does_not_tell_which_jobs_are_gone():
    """Perhaps a job whose id is damaged; when the next is no better, the others are gone."""
    jobs = [a_job("1"), a_job("2"), a_job("3"), a_job("4")]
    odd = [a_job("1"), a_job("2", hold=77), a_job("3 ")]
    session = a_session(a_full(jobs))
    assert session.whole
    assert not session.apply(a_delta(1, jobs=odd[1:2]))
    assert session.apply(a_full(odd, generation=2))
    assert (session.whole, session.gone) == (False, [])
    assert session.apply(a_full(odd, generation=3))
    assert (session.whole, sorted(session.left_out_jobs)) == (True, ["2", "3 "])
    assert session.apply(a_full(odd[:2], generation=4))
    assert session.whole
    assert session.apply(a_full([*odd, a_job("5", hold=76)], generation=5))
    assert not session.whole


def test_a_job_that_was_left_out_is_gone_when_it_is_removed():
    session = a_session(a_full([a_job("1"), a_job("2", hold=77), a_job("3", hold=77)]))
    session.apply(a_delta(1, now_s=NOW_S + 1, removed_jobs=["2"]))
    session.apply(a_full([a_job("1"), a_job("3", hold=77)], generation=3))
    assert session.apply(a_delta(3, now_s=NOW_S + 2, removed_jobs=["3"]))
    assert (session.gone, list(session.left_out_jobs)) == (["3"], [])
