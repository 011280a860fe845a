# SPDX-License-Identifier: Apache-2.0
"""Reservations are confirmed where nothing else is, and with texts that the server can read."""

import re
from datetime import UTC, datetime

import pytest

from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.decisions.reservations import DENIED, answer
from bridge.pbs.objects.parsed import Reader
from bridge.pbs.objects.sched_files import read_sched_files
from bridge.pbs.orders import StartOrder
from bridge.pbs.report.translation import Translation
from tests.pbs_tables import NOW_S, a_job, a_queue, a_vnode, running, some_tables
from tests.unit.pbs.model.test_translation import Service

FORM = re.compile(r"([0-9]+#)?(\([^(){}#]+\)(\+\([^(){}#]+\))*(\{[0-9,-]+\})?)+")


def requested(select="2:ncpus=2", place="free", start_s=NOW_S + 1000, length_s=600, **settings):
    return {
        "reserve_state": "1", "reserve_start": str(start_s), "reserve_end": str(start_s + length_s),
        "reserve_duration": str(length_s), "schedselect": select, "queue": "R1",
        "Resource_List": {"select": select, "place": place}, "Reserve_Owner": "ann@host",
        **settings,
    }  # fmt: skip


def confirmed(nodes, start_s=NOW_S + 1000, length_s=600, **settings):
    return requested(start_s=start_s, length_s=length_s, **settings) | {
        "reserve_state": "2", "resv_nodes": nodes, "queue": "R9",
    }  # fmt: skip


def located(reservation, **settings):
    others = settings.pop("others", {})
    tables = some_tables(reservations={"R1.srv": reservation, **others}, **settings)
    found = answer(tables, "R1.srv")
    if found is not None and found != DENIED:
        assert FORM.fullmatch(found.location), found.location
        assert found.extend == "PBS_RESV_CONFIRM_SUCCESS:partition=pbs-default"
    return found


def test_confirmed_on_free_vnodes():
    found = located(requested("2:ncpus=2", "scatter"))
    assert (found.location, found.start_s) == ("(n1:ncpus=2)+(n2:ncpus=2)", NOW_S + 1000)


def test_only_what_is_not_decided_yet_is_answered():
    assert located(requested(reserve_state="2")) is None
    assert located(requested(reserve_state="10")) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"select": "9:ncpus=4"},
        {"select": "1:foo=2"},
        {"select": "not a select"},
        {"length_s": 0},
        {"start_s": NOW_S - 9000},
        {"reserve_rrule": "FREQ=NONSENSE", "reserve_count": "2"},
        {"reserve_rrule": "FREQ=DAILY", "reserve_count": "99999"},
    ],
)
def test_denied_if_it_cannot_be(changed):
    assert located(requested(**changed)) == DENIED


def test_running_jobs_that_end_before_it_begins_are_no_hindrance():
    vnodes = {"n1": a_vnode("n1")}
    for walltime, found in (("00:10:00", "(n1:ncpus=4)"), ("01:00:00", "null"), ("0", "null")):
        job = running("(n1:ncpus=4)", listed={"walltime": walltime})
        answered = located(requested("1:ncpus=4"), vnodes=vnodes, jobs={"1.srv": job})
        assert answered.location == found


def test_other_reservations_keep_their_vnodes():
    vnodes = {"n1": a_vnode("n1"), "n2": a_vnode("n2")}
    for place, start_s, found in (
        ("free", NOW_S + 1000, "(n1:ncpus=2)"),
        ("excl", NOW_S + 1000, "(n2:ncpus=2)"),
        ("excl", NOW_S + 1600, "(n1:ncpus=2)"),
    ):
        others = {"R9.srv": confirmed("(n1:ncpus=1)", place=place, start_s=start_s)}
        assert located(requested("1:ncpus=2"), vnodes=vnodes, others=others).location == found
    whole = located(requested("1:ncpus=2", "excl"), vnodes=vnodes,
                    others={"R9.srv": confirmed("(n1:ncpus=1)")})  # fmt: skip
    assert whole.location == "(n2:ncpus=2)"


def test_a_standing_one_needs_vnodes_for_each_occurrence():
    day = {"reserve_rrule": "FREQ=DAILY;COUNT=3", "reserve_count": "3", "reserve_timezone": "UTC"}
    vnodes = {"n1": a_vnode("n1"), "n2": a_vnode("n2")}
    assert located(requested("1:ncpus=3", **day), vnodes=vnodes).location == "3#(n1:ncpus=3){0-2}"
    others = {"R9.srv": confirmed("(n1:ncpus=4)", start_s=NOW_S + 1000 + 86_400)}
    found = located(requested("1:ncpus=3", **day), vnodes=vnodes, others=others)
    assert found.location == "3#(n1:ncpus=3){0,2}(n2:ncpus=3){1}"


# ------------------------------------------------------------------ of parts of vnodes


def planned(jobs, nodes="(n1:ncpus=2)", start_s=NOW_S + 1000, cycles=1, **settings):
    """The service's answers to jobs beside a reservation R9.srv of a vnode."""
    begun = start_s <= NOW_S
    reservation = confirmed(nodes, start_s=start_s) | ({"reserve_state": "5"} if begun else {})
    queues = {"workq": a_queue(), "R9": a_queue(started="True" if begun else "False")}
    tables = some_tables(
        jobs, {"n1": a_vnode("n1")}, queues=queues, reservations={"R9.srv": reservation} | settings
    )
    service, found = Service(tables, judge=lambda _: []), {}
    for _ in range(cycles):
        found |= {n: a.exec_vnode for n, a in service.cycle().items() if isinstance(a, StartOrder)}
    return found


LONG = {"walltime": "05:00:00"}


@pytest.mark.parametrize(
    ("select", "listed", "runs"),
    [
        ("1:ncpus=2", LONG, True),
        ("1:ncpus=3", LONG, False),
        ("1:ncpus=4", {}, True),
        ("1:ncpus=4", {"walltime": "00:17:00"}, False),
    ],
)
def test_the_rest_of_a_vnode_is_free(select, listed, runs):
    assert bool(planned({"1.srv": a_job(select, listed=listed)})) is runs


def test_two_jobs_do_not_take_what_is_reserved():
    jobs = {f"{at}.srv": a_job("1:ncpus=2", listed=LONG) for at in (1, 2)}
    assert planned(jobs, cycles=3).keys() == {"1.srv"}


def test_two_reservations_of_one_vnode():
    other = confirmed("(n1:ncpus=1)") | {"queue": "R8"}
    jobs = {f"{at}.srv": a_job("1:ncpus=1", listed=LONG) for at in (1, 2)}
    assert planned(jobs, cycles=3, **{"R8.srv": other}).keys() == {"1.srv"}


def test_jobs_in_a_part_of_a_vnode():
    jobs = {
        "1.srv": a_job("1:ncpus=3"), "2.srv": a_job("1:ncpus=2", listed={"walltime": "00:05:00"}),
        "3.srv": a_job("1:ncpus=3", queue="R9", listed={"walltime": "00:05:00"}),
        "4.srv": a_job("1:ncpus=2", queue="R9", listed={"walltime": "00:05:00"}),
        "5.srv": a_job("1:ncpus=1", queue="R9", listed={"walltime": "00:05:00"}),
        "6.srv": a_job("1:ncpus=1"),
    }  # fmt: skip
    found = planned(jobs, start_s=NOW_S - 10, cycles=4)
    assert found == {"2.srv": "(n1:ncpus=2)", "4.srv": "(n1:ncpus=2)"}


def test_an_unused_part_stays_reserved():
    found = planned({"1.srv": a_job("1:ncpus=3"), "2.srv": a_job()}, start_s=NOW_S - 10, cycles=2)
    assert found.keys() == {"2.srv"}


@pytest.mark.parametrize("partition", ["", "pbs-default", "other"])
def test_the_queue_of_a_reservation_is_in_the_partition_of_its_scheduler(partition):
    reservation = confirmed("(n1:ncpus=2)", start_s=NOW_S - 5) | {"reserve_state": "5"}
    queues = {"workq": a_queue(), "R9": a_queue(partition=partition)}
    jobs = {"1.srv": a_job("1:ncpus=2", queue="R9")}
    tables = some_tables(jobs, queues=queues, reservations={"R9.srv": reservation})
    found = Service(tables, "pbs").cycle().get("1.srv")
    assert (found == StartOrder("1.srv", "(n1:ncpus=2)")) is (partition != "other"), found


# ------------------------------------------------------------------ dedicated time, recurrence

DAY_S = 86_400


def stamp(at_s):
    return datetime.fromtimestamp(at_s, UTC).strftime("%m/%d/%Y %H:%M")


@pytest.mark.parametrize(
    ("begins_s", "setting", "name", "denied"),
    [
        (1200, "", "R1.srv", True),
        (1200, "resv_confirm_ignore: none\n", "R1.srv", True),
        (1200, "resv_confirm_ignore: dedicated_time\n", "R1.srv", False),
        (1200, "", "M1.srv", False),
        (9000, "", "R1.srv", False),
        (DAY_S + 1200, "", "R1.srv", True),
    ],
)
def test_dedicated_time_is_in_the_way_unless_sched_config_says_otherwise(
    begins_s, setting, name, denied
):
    times = f"{stamp(NOW_S + begins_s)} {stamp(NOW_S + begins_s + 600)}"
    texts = {"sched_config": f"resources: ncpus\n{setting}", "dedicated_time": times}
    daily = {"reserve_rrule": "FREQ=DAILY;COUNT=2", "reserve_count": "2"}
    tables = some_tables(reservations={name: requested("1:ncpus=1", **daily)})
    found = answer(tables, name, Reader(read_sched_files(texts, UTC)))
    assert (found == DENIED) is denied


@pytest.mark.parametrize(("until_s", "denied"), [(3600, False), (1440, True)])
def test_a_reservation_within_dedicated_time_is_confirmed(until_s, denied):
    times = f"{stamp(NOW_S + 600)} {stamp(NOW_S + until_s)}"
    texts = {"sched_config": "resources: ncpus\n", "dedicated_time": times}
    tables = some_tables(reservations={"R1.srv": requested("1:ncpus=1")})
    assert (answer(tables, "R1.srv", Reader(read_sched_files(texts, UTC))) == DENIED) is denied


def standing(**settings):
    return confirmed("(n1:ncpus=4)") | {
        "reserve_rrule": "FREQ=DAILY;COUNT=4", "reserve_count": "4", "reserve_index": "2",
        "reserve_execvnodes": "4#(n1:ncpus=4){0-1,3}(n2:ncpus=4){2}", **settings,
    }  # fmt: skip


def test_later_occurrences_of_a_standing_one_are_planned():
    parsed = Reader().read(some_tables(reservations={"S9.srv": standing()}))
    found = {name: (r.start_s - NOW_S, list(r.held)) for name, r in parsed.reservations.items()}
    assert found == {
        "S9.srv": (1000, ["n1"]), "S9.srv#3": (1000 + DAY_S, ["n2"]),
        "S9.srv#4": (1000 + 2 * DAY_S, ["n1"]),
    }  # fmt: skip
    assert parsed.by_queue["R9"].name == "S9.srv"
    items = Translation().report(parsed.tables).reservations.items
    assert {each.name for each in items} == set(found)


@pytest.mark.parametrize(
    "odd",
    [
        {"reserve_execvnodes": "nonsense"}, {"reserve_rrule": "FREQ=NONSENSE"},
        {"reserve_index": "9"}, {"reserve_count": "99999"}, {"reserve_state": "1"},
        {"reserve_execvnodes": "4#(n1:ncpus=x){0-3}"}, {"reserve_execvnodes": "4#(n1){0-9999999}"},
    ],
)  # fmt: skip
def test_what_the_server_does_not_state_soundly_is_left_out(odd):
    parsed = Reader().read(some_tables(reservations={"S9.srv": standing(**odd)}))
    assert "S9.srv" in parsed.reservations
    assert all(r.end_s - r.start_s == 600 for r in parsed.reservations.values())


def test_no_job_starts_that_would_run_into_a_later_occurrence():
    vnodes = {"n2": a_vnode("n2")}
    reservation = standing(resv_nodes="(n1:ncpus=4)", reserve_start=str(NOW_S - 10),
                           reserve_end=str(NOW_S + 590), reserve_state="5")  # fmt: skip
    for walltime, runs in (("12:00:00", True), ("48:00:00", False)):
        jobs = {"1.srv": a_job("1:ncpus=4", listed={"walltime": walltime})}
        tables = some_tables(jobs, vnodes, reservations={"S9.srv": reservation})
        found = Service(tables, judge=lambda _: []).cycle()
        assert isinstance(found.get("1.srv"), StartOrder) is runs
        assert isinstance(LastCheck(tables).run_now("1.srv"), StartOrder) is runs
