# SPDX-License-Identifier: Apache-2.0
"""One object of a report that holds anything stops no other: not its rows, not its plan.

Each field of each kind of object is replaced by values that no controller should send.
"""

import copy
import itertools

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.json_format import MessageToJson

from bridge.registry import PRESETS, build
from bridge.rpc.operators.explain import explain, planned_jobs
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.irregularities import DOUBT_S
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import WHOLE
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_node,
    a_request,
    a_running_job,
    a_session,
    canonical,
    some_cycles,
    some_nodes,
)

TEXTS = ("", "x" * 2000, "a\n\x1b[2Jb", "n[1-999999999]", "n[0-1],n[", "n3,n3,n99", "batch,other")
NUMBERS = {
    Field.CPPTYPE_INT32: (-(2**31), -1, 2**31 - 1),
    Field.CPPTYPE_INT64: (-(2**63), -1, 1 << 50, 2**63 - 1),
    Field.CPPTYPE_UINT32: (0, 2**32 - 1),
    Field.CPPTYPE_UINT64: (0, 1 << 40, 2**63, 2**64 - 1),
    Field.CPPTYPE_ENUM: (0, 77),
    Field.CPPTYPE_BOOL: (False, True),
    Field.CPPTYPE_DOUBLE: (float("nan"), float("-inf"), -1.0),
    Field.CPPTYPE_STRING: TEXTS,
}


def poisoned(message):
    """Copies of a message, each with one odd field, however deep; and some with a part twice."""
    for field in message.DESCRIPTOR.fields:
        repeated = field.is_repeated
        if field.cpp_type == Field.CPPTYPE_MESSAGE:
            there = getattr(message, field.name)
            parts = list(there) if repeated else [there]
            for part in parts or [getattr(message, field.name).add()] if repeated else parts:
                for odd in poisoned(copy.deepcopy(part)):
                    changed = copy.deepcopy(message)
                    if repeated:
                        del getattr(changed, field.name)[:]
                        getattr(changed, field.name).extend([odd, odd])
                    else:
                        getattr(changed, field.name).CopyFrom(odd)
                    yield changed
            continue
        for value in NUMBERS[field.cpp_type]:
            changed = copy.deepcopy(message)
            if repeated:
                del getattr(changed, field.name)[:]
                getattr(changed, field.name).extend([value] * 2)
            else:
                setattr(changed, field.name, value)
            yield changed


MALLEABLE = pb.Malleable(min_nodes=1, max_nodes=2, node_constraint="pof2")


def a_report(job="9", **others):
    """A report in which everything occurs twice at least; the odd ones are named 9, n9, p9, ..."""
    nodes = [*some_nodes(5, gres=[pb.Gres(name="gpu:a", count=2)], features=["f"]), a_node("n9")]
    parts = [
        pb.Partition(name=name, nodes=members, up=True, max_time_s=9000, default_time_s=60)
        for name, members in (("batch", "n[0-4],n9"), ("other", "n[0-1]"), ("p9", "n2"))
    ]
    kept = [
        pb.Reservation(name=name, start_s=NOW_S + 9000, end_s=NOW_S + 9900, nodes="n1")
        for name in ("r1", "r9")
    ]
    return a_full(
        [a_job("1"), a_job("2", user="bob", request=a_request(features="f", min_nodes=2)),
         a_running_job("3", "n0"), a_running_job("4", "n1", cpus=2, end_s=NOW_S + 50)],
        nodes,
        partitions=pb.Partitions(items=parts),
        reservations=pb.Reservations(items=kept),
        licences=pb.Licences(items=[pb.Licence(name=name, total=3) for name in ("l1", "l9")]),
        ended=[pb.EndedJob(id=str(at), start_s=9, end_s=99, time_limit_s=600) for at in (5, 6)],
    )  # fmt: skip


def odd_reports():
    """Reports with one odd object among others; some of them in every run."""
    for what in ("partitions", "reservations", "licences"):
        report = a_report()
        items = getattr(report, what).items
        items.add().CopyFrom(items[0])
        yield report
    yield from itertools.islice(_all_odd_reports(), 0, None, 1 if WHOLE else 11)


def _all_odd_reports():
    used = pb.NodeUse(nodes="n2", cpus=1, memory_mib=1, until_s=NOW_S + 9)
    running = a_running_job("9", "n2", cpus=1, memory_mib=1)
    running.request.CopyFrom(a_request(malleable=MALLEABLE))
    running.allocation.uses.add(nodes="n3", cpus=1)
    running.allocation.uses[0].CopyFrom(used)
    waiting = a_job("9", request=a_request(malleable=MALLEABLE))
    waiting.request.gres_per_node.add(name="gpu:a", count=1)
    node = a_node("n9", gres=[pb.Gres(name="gpu:b", count=1)], features=["f"])
    ended = pb.EndedJob(id="9", start_s=9, end_s=99)
    for what, sound in (("jobs", waiting), ("jobs", running), ("ended", ended)):
        for odd in (*poisoned(sound), sound):
            report = a_report()
            getattr(report, what).extend([odd, sound] if odd is sound else [odd])
            yield report
    for odd in poisoned(node):
        report = a_report()
        report.nodes[-1].CopyFrom(odd)
        yield report
    for what in ("partitions", "reservations", "licences"):
        for at, odd in enumerate(poisoned(getattr(a_report(), what).items[-1])):
            report = a_report()
            items = getattr(report, what).items
            items.add().CopyFrom(odd) if at % 2 else items[-1].CopyFrom(odd)
            yield report


def others(snapshot):
    """What a snapshot says of all objects that are never odd."""
    known = canonical(snapshot)
    resources = [name for name in known["resources"] if "b" not in name.partition(":")[2]]
    columns = [known["resources"].index(name) for name in resources]

    def vector(values):
        return [values[at] for at in columns]

    for job in known["jobs"].values():
        for name in ("per_node", "per_task"):
            job[name] = vector(job[name])
        job["licences"] = job["licences"][:1]
    return (
        {key: known["jobs"].get(key) for key in ("1", "2")},
        {
            key: (held["start_s"], held["end_s"], held["nodes"], [vector(u) for u in held["use"]])
            for key, held in known["running"].items()
            if key in ("3", "4")
        },
        {
            key: (vector(node[0]), *node[1:])
            for key, node in known["nodes"].items()
            if key in ("n0", "n1", "n2", "n3", "n4")
        },
        [part["name"] for part in known["partitions"] if part["name"] in ("batch", "other")],
        [part | {"licences": 0} for part in known["reservations"] if part["name"] == "r1"],
        [name for name in snapshot.licences if name == "l1"],
    )


def texts(message):
    """All texts in a message."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else [value]:
            if field.cpp_type == Field.CPPTYPE_STRING:
                yield each
            elif field.cpp_type == Field.CPPTYPE_MESSAGE:
                yield from texts(each)


def test_whatever_an_object_of_a_report_holds_all_others_are_planned():
    """In full reports and in deltas; within a minute a full report is requested once at most."""
    expected = others(a_session(a_report()).snapshot()[0])
    tried = 0
    for odd in odd_reports():
        tried += 1
        decider = Decider(build(PRESETS["slurm-like"]))
        cycles = some_cycles(decider.decide, "slurm-like")
        first = cycles.run(odd)
        assert not first.need_full, odd
        assert others(cycles.session.snapshot()[0]) == expected, odd
        assert decider.failures == 0, odd
        starts = {each.job_id for each in first.decisions if each.HasField("start")}
        assert starts >= {"1", "2"} or "9" in starts, odd
        answers = [*planned_jobs(cycles.published, 0)]
        assert {answer.job_id for answer in answers} >= {"1", "2"}, odd
        answers += [explain(cycles.published, job_id) for job_id in ("1", "2", "3", "4")]
        answers.append(first)
        for answer in answers:
            assert all(map(str.isprintable, texts(answer))), odd
            MessageToJson(answer)
        for generation in (2, 3):
            later = a_delta(generation - 1, now_s=NOW_S + 19 * generation)
            later.nodes.add().CopyFrom(a_node("n8", state=str(generation)))
            assert not cycles.run(later).need_full, odd
    assert tried > 70


def test_an_odd_delta_asks_for_everything_once_and_is_then_taken():
    expected = others(a_session(a_report()).snapshot()[0])
    for odd in odd_reports():
        session = a_session(a_report())
        delta = copy.deepcopy(odd)
        delta.base_generation, delta.generation = 1, 2
        if not session.apply(delta):
            assert session.apply(odd), odd
            again = copy.deepcopy(odd)
            again.base_generation, again.generation = 1, 2
            again.now_s += DOUBT_S - 1
            assert session.apply(again), odd
        assert session.full_requests <= 1, odd
        assert others(session.snapshot()[0]) == expected, odd
