# SPDX-License-Identifier: Apache-2.0
"""One object that cannot be read never stops the report of the others.

The values that are tried with each attribute take some 20 s.
"""

import json

import pytest

from bridge.pbs.ifl.qstat_json import read_output
from bridge.pbs.report.translation import Translation
from tests.pbs_tables import NOW_S, a_job, a_queue, a_vnode, running, some_tables

POISON = (
    "", "\x00", "9" * 30, "9" * 5000, "-1", "nan", "inf", "1e400", "[[[", "::::", "(n1:ncpus=)",
    "\ud800", "1:ncpus=99999999999999999999", "(", "(n1:ncpus=1e999)", "\n", "99:99:99:99:99",
    "²", "n1+n1", "=", "@", "(n1:mem=99999999999999999pb)", {}, {"ncpus": "\ud800"}, {"": ""},
    None, 3, ["a"],
)  # fmt: skip
RESERVATION = {
    "reserve_state": "2", "reserve_start": str(NOW_S + 100), "reserve_end": str(NOW_S + 200),
    "resv_nodes": "(n3:ncpus=1)", "queue": "R1", "Reserve_Owner": "a@b",
    "reserve_rrule": "FREQ=DAILY;COUNT=3", "reserve_execvnodes": "3#(n3:ncpus=1){0-2}",
    "reserve_index": "1", "reserve_count": "3",
}  # fmt: skip
ODD = {
    "jobs": ("3.s", [running("(n4:ncpus=1)"), a_job(), a_job(array="True", state="B",
             array_indices_submitted="0-3", array_indices_remaining="0-3")]),
    "vnodes": ("odd", [a_vnode("odd")]),
    "queues": ("odd", [a_queue(Priority="5", max_run="[u:PBS_GENERIC=3]")]),
    "reservations": ("S1.s", [RESERVATION, {**RESERVATION, "reserve_rrule": ""}]),
}  # fmt: skip
MORE = (
    "stime", "depend", "Execution_Time", "array_id", "Priority", "project", "euser", "egroup",
    "Account_Name", "run_count", "resources_used", "max_run_subjobs", "node_group_key",
    "resources_default", "partition", "server", "eligible_time", "estimated",
)  # fmt: skip


def with_odd(kind, odd=None):
    """Two running and two waiting jobs of two users, and one odd object."""
    name = ODD[kind][0]
    objects = {
        "jobs": {
            "1.s": running("(n1:ncpus=1)", user="bob"), "2.s": a_job(user="ann"),
            "4.s": running("(n2:ncpus=2)", user="ann"), "5.s": a_job(user="bob"),
        },
        "vnodes": {f"n{at}": a_vnode(f"n{at}") for at in range(1, 5)},
        "queues": {"workq": a_queue()},
        "reservations": {},
    }  # fmt: skip
    if odd is not None:
        objects[kind] = {name: odd, **objects[kind]}
    return some_tables(**objects)


def poisoned(attributes):
    """The attributes with one odd value, and which."""
    for name in (*attributes, *MORE):
        for odd in POISON:
            yield f"{name}={odd!r:.20}", {**attributes, name: odd}
            inner = attributes.get(name)
            if isinstance(inner, dict):
                for key in (*inner, "scratch"):
                    yield f"{name}.{key}={odd!r:.20}", {**attributes, name: {**inner, key: odd}}


@pytest.mark.parametrize("kind", ODD)
def test_the_others_are_reported(kind):
    """Slow: each attribute is tried with each odd value."""
    good = Translation().report(with_odd(kind))
    left_out = 0
    for attributes in ODD[kind][1]:
        for what, odd in poisoned(attributes):
            found = Translation().report(with_odd(kind, odd))
            for job_id, message in good.jobs.items():
                assert found.jobs[job_id].user == message.user, what
                assert found.jobs[job_id].state == message.state, what
            assert found.nodes.keys() >= {"n1", "n2", "n3", "n4"}, what
            left_out += any("is left out" in line for line in found.not_modelled)
    assert left_out or kind == "queues"  # whatever a queue states is understood, or ignored


def test_it_is_named_counted_and_logged_once(caplog):
    translation = Translation()
    odd = {f"{n}.s": a_job(listed={"walltime": 3}) for n in range(20, 35)}
    tables = some_tables({"1.s": a_job(user="ann"), **odd, "2.s": a_job(user="bob")})
    for _ in range(3):
        report = translation.report(tables)
        assert sorted(report.jobs) == ["1.s", "2.s"]
        named = [line for line in report.not_modelled if "left out" in line]
        assert named[0].startswith("job 20.s is left out: AttributeError")
        assert named[-1] == "5 more of kind job are left out"
        tables = some_tables({name: dict(job) for name, job in tables.jobs.items()})
    assert len(caplog.records) == len(odd)
    report = translation.report(some_tables({"1.s": a_job(user="ann")}))
    assert not any("left out" in line for line in report.not_modelled)


def test_vnodes_of_a_running_job_that_cannot_be_read_start_nothing():
    odd = running("(n1:ncpus=1)+(n2:ncpus=1)", listed={"walltime": 3})
    report = Translation().report(some_tables({"1.s": odd, "2.s": a_job()}))
    assert sorted(report.jobs) == ["2.s"]
    usable = {name for name, node in report.nodes.items() if node.usable}
    assert usable == {"n3", "n4"}


def test_a_name_with_half_a_character_is_readable():
    jobs = {f"{n}.s": a_job(Job_Name=name) for n, name in ((1, "a"), (2, "\ud800b"))}
    read = read_output(json.dumps({"Jobs": jobs}).encode(), "Jobs").objects
    report = Translation().report(some_tables(dict(read)))
    assert [report.jobs[name].name for name in ("1.s", "2.s")] == ["a", "?b"]
