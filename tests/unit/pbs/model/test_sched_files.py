# SPDX-License-Identifier: Apache-2.0
"""sched_config, holidays, dedicated_time and resource_group, read and obeyed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.objects.calendar import (
    FOREVER,
    is_prime,
    period_end_s,
    read_dedicated,
    read_holidays,
)
from bridge.pbs.objects.fair_share import FairShare, read_members
from bridge.pbs.objects.parsed import Reader
from bridge.pbs.objects.sched_config import DEFAULTS, read_sched_config
from bridge.pbs.objects.sched_files import read_sched_files
from bridge.pbs.orders import Refusal, StartOrder
from bridge.pbs.report.node_weights import node_weights
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.pbs_tables import NOW_S, a_job, a_queue, a_vnode, running, some_tables, violations
from tests.unit.pbs.model.test_translation import Service

STOCK = """
# comment
round_robin: False  all
by_queue: True      prime
by_queue: True      non_prime
strict_ordering: false ALL
node_sort_key: "sort_priority HIGH" ALL
provision_policy: "aggressive_provision"
resources: "ncpus, mem, arch, host, vnode, aoe, eoe"
smp_cluster_dist: pack
fair_share: false ALL
fairshare_decay_time: 24:00:00
preemptive_sched: true ALL
dedicated_prefix: ded
primetime_prefix: p_
"""


def test_stock_file():
    config = read_sched_config(STOCK)
    assert (config.prime.by_queue, config.non_prime.by_queue) == (True, True)
    assert config.decay_s == 86_400
    assert config.compared == {"ncpus", "mem", "arch", "host", "vnode", "aoe", "eoe"}
    assert not config.problems
    assert read_sched_config(None) is DEFAULTS


def test_prime_and_non_prime_apart():
    config = read_sched_config("fair_share: True prime\nby_queue: True non_prime\n")
    assert (config.prime.fair_share, config.non_prime.fair_share) == (True, False)
    assert (config.prime.by_queue, config.non_prime.by_queue) == (False, True)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("strict_ordering: True ALL", "strict_ordering: True is not supported"),
        ("peer_queue: a b@c", "peer_queue"),
        ("round_robin: True", "round_robin"),
        ("smp_cluster_dist: lowest_load", "smp_cluster_dist"),
        ("nonsense: 1", "nonsense: is not known"),
        ("no colon", "line 1 is not NAME: VALUE"),
        ("by_queue: True sometimes", "'sometimes'"),
        ('job_sort_key: "ncpus"', "RESOURCE HIGH"),
        ('node_sort_key: "ncpus HIGH free"', "total, assigned or unused"),
        ("fairshare_decay_factor: 1.5", "between 0 and 1"),
        ("fairshare_entity: who", "who"),
        ("fairshare_usage_res: __import__('os')", "fairshare_usage_res"),
        ("prime_spill: soon", "prime_spill"),
        ("server_dyn_res: \"lic !/bin/x\"", "dynamic resources"),
    ],
)  # fmt: skip
def test_each_odd_line_is_reported(line, word):
    problems = read_sched_config(line).problems
    assert len(problems) == 1
    assert word in problems[0]


@given(st.text(max_size=200))
def test_no_text_stops_it(text):
    files = read_sched_files(
        dict.fromkeys(("sched_config", "holidays", "dedicated_time", "resource_group"), text), UTC
    )
    assert all(line.isprintable() or line for line in files.problems)


# ------------------------------------------------------------------ prime time

WEEK = "YEAR 2024\nweekday 0600 1730\nsaturday none all\nsunday none all\n 1 Jan 1 New Year\n"


def at(year, month, day, hour, minute=0):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("when", "prime", "until"),
    [
        (at(2024, 3, 4, 5, 59), False, at(2024, 3, 4, 6)),
        (at(2024, 3, 4, 6), True, at(2024, 3, 4, 17, 30)),
        (at(2024, 3, 8, 17, 30), False, at(2024, 3, 11, 6)),
        (at(2024, 3, 9, 12), False, at(2024, 3, 11, 6)),
        (at(2024, 1, 1, 12), False, at(2024, 1, 2, 6)),
    ],
)
def test_periods(when, prime, until):
    holidays = read_holidays(WEEK)
    assert is_prime(holidays, when) is prime
    assert period_end_s(holidays, int(when.timestamp()), UTC) == int(until.timestamp())


@given(st.integers(0, 10_000))
def test_nothing_changes_within_a_period(minutes):
    holidays, when = read_holidays(WEEK), at(2024, 1, 1, 0) + timedelta(minutes=minutes)
    end_s = period_end_s(holidays, int(when.timestamp()), UTC)
    last = datetime.fromtimestamp(end_s, UTC)
    steps = [when + timedelta(minutes=each) for each in range(0, int((last - when).total_seconds() // 60), 7)]  # fmt: skip # noqa: E501
    assert {is_prime(holidays, each) for each in steps} == {is_prime(holidays, when)}
    assert is_prime(holidays, last) is not is_prime(holidays, when)


def test_without_a_year_always_prime():
    holidays = read_holidays("weekday 0600 1730\n")
    assert is_prime(holidays, at(2024, 3, 4, 3))
    assert period_end_s(holidays, NOW_S, UTC) == FOREVER


def test_dedicated_time_is_read():
    spans, problems = read_dedicated("03/04/2024 10:00 3/4/24 12:00\nbad\n1/1/2024 5:00 1/1/2024 4:00", UTC)  # fmt: skip # noqa: E501
    assert spans == [(int(at(2024, 3, 4, 10).timestamp()), int(at(2024, 3, 4, 12).timestamp()))]
    assert len(problems) == 2


# ------------------------------------------------------------------ through the service


def hhmm(after_s):
    return f"{datetime.fromtimestamp(NOW_S + after_s, UTC):%H%M}"


def date(after_s):
    return f"{datetime.fromtimestamp(NOW_S + after_s, UTC):%m/%d/%Y %H:%M}"


def starts(jobs, texts, judge=violations, **changed):
    """The jobs that the service starts at once, and where."""
    service = Service(some_tables(jobs, **changed), "pbs", judge)
    service.translation.reader.files = read_sched_files(texts, UTC)
    answers = service.cycle()
    return {name: each.exec_vnode for name, each in answers.items() if isinstance(each, StartOrder)}


QUEUES = {name: a_queue() for name in ("workq", "p_day", "np_night", "ded1")}
ALL_PRIME = "YEAR 2024\n" + "\n".join(
    f"{day} all none" for day in ("weekday", "saturday", "sunday")
)


def test_prime_queues():
    jobs = {f"{at}.srv": a_job(queue=queue) for at, queue in enumerate(QUEUES)}
    texts = {"sched_config": STOCK + "nonprimetime_prefix: np_\n", "holidays": ALL_PRIME}
    assert starts(jobs, texts, queues=QUEUES).keys() == {"0.srv", "1.srv"}
    night = ALL_PRIME.replace("all none", "none all")
    assert starts(jobs, texts | {"holidays": night}, queues=QUEUES).keys() == {"0.srv", "2.srv"}


@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ("", {"1.srv", "2.srv"}),
        ("backfill_prime: True ALL\n", {"1.srv"}),
        ("backfill_prime: True ALL\nprime_spill: 3:00:00 ALL\n", {"1.srv", "2.srv"}),
        ("backfill_prime: True\nprime_exempt_anytime_queues: True\n", {"1.srv", "2.srv"}),
    ],
)
def test_across_the_end_of_a_period(more, runs):
    jobs = {"1.srv": a_job(), "2.srv": a_job(listed={"walltime": "02:00:00"})}
    times = f"{hhmm(-3600)} {hhmm(3600)}"
    days = "\n".join(f"{day} {times}" for day in ("weekday", "saturday", "sunday"))
    texts = {"sched_config": STOCK + more, "holidays": f"YEAR 2024\n{days}"}
    assert starts(jobs, texts).keys() == runs


def test_dedicated_time():
    jobs = {
        "1.srv": a_job(), "2.srv": a_job(queue="ded1"),
        "3.srv": a_job(queue="ded1", listed={"walltime": "05:00:00"}),
        "4.srv": a_job(listed={"walltime": "05:00:00"}),
    }  # fmt: skip
    now = {"sched_config": STOCK, "dedicated_time": f"{date(-3600)} {date(7200)}"}
    assert starts(jobs, now, queues=QUEUES).keys() == {"2.srv"}
    later = {"sched_config": STOCK, "dedicated_time": f"{date(3600)} {date(7200)}"}
    assert starts(jobs, later, queues=QUEUES).keys() == {"1.srv"}
    assert starts(jobs, {"sched_config": STOCK}, queues=QUEUES).keys() == {"1.srv", "4.srv"}


def test_the_last_check_knows_the_time_of_day():
    tables = some_tables({"1.srv": a_job(listed={"walltime": "05:00:00"})})
    texts = {"sched_config": STOCK, "dedicated_time": f"{date(3600)} {date(7200)}"}
    check = LastCheck(tables, Reader(read_sched_files(texts, UTC)))
    job = check.parsed.jobs["1.srv"]
    answer = check.admit(
        pb.Decision(job_id="1.srv", job_version=job.version, start=pb.Start(nodes="n1"))
    )
    assert isinstance(answer, Refusal)
    assert answer.text == "would run into dedicated time"


def test_jobs_that_ask_for_a_resource_whose_amount_a_program_states_are_held():
    jobs = {"1.srv": a_job(listed={"lic": "1"}), "2.srv": a_job(listed={"lic": "0"})}
    texts = {"sched_config": STOCK + 'server_dyn_res: "lic !/usr/bin/lic"\n'}
    assert starts(jobs, texts).keys() == {"2.srv"}
    reader = Reader(read_sched_files(texts, UTC))
    check = LastCheck(some_tables(jobs), reader)
    assert "server_dyn_res" in check.parsed.jobs["1.srv"].problem
    reader.files = read_sched_files({"sched_config": STOCK}, UTC)
    assert not LastCheck(some_tables(jobs), reader).parsed.jobs["1.srv"].problem


def test_a_resource_that_is_not_compared():
    jobs = {"1.srv": a_job("1:ncpus=1:color=blue"), "2.srv": a_job("1:ncpus=1:scratch=9gb"),
            "3.srv": a_job("1:ncpus=1:big=true")}  # fmt: skip
    assert starts(jobs, {}) == {}
    found = starts(jobs, {"sched_config": STOCK}, judge=lambda _: [])
    assert found.keys() == {"1.srv", "2.srv"}
    assert found["2.srv"] == "(n1:ncpus=1)"


@pytest.mark.parametrize(
    ("key", "node"),
    [
        ("sort_priority HIGH", "n3"), ("sort_priority LOW", "n1"), ("mem LOW", "n4"),
        ("ncpus HIGH unused", "n1"), ("ncpus HIGH assigned", "n2"),
    ],
)  # fmt: skip
def test_node_sort_key(key, node):
    vnodes = {f"n{at}": a_vnode(f"n{at}") for at in range(1, 5)}
    vnodes["n3"] = a_vnode("n3", Priority="5")
    vnodes["n4"] = a_vnode("n4", mem="1gb")
    tables = some_tables({"7.srv": running("(n2:ncpus=1)")}, vnodes)
    parsed = Reader(read_sched_files({"sched_config": f'node_sort_key: "{key}" ALL'})).read(tables)
    weights = node_weights(parsed, parsed.nodes)
    assert min(weights, key=lambda name: (weights[name], name)) == node


def first_of(jobs, texts, **changed):
    """Which of several jobs that each need the whole machine starts."""
    found = starts(jobs, texts, **changed)
    assert len(found) == 1
    return next(iter(found))


WHOLE = "4:ncpus=4"


@pytest.mark.parametrize(
    ("config", "first"),
    [
        ("", "1.srv"),
        ('job_sort_key: "job_priority HIGH" ALL', "3.srv"),
        ('job_sort_key: "walltime LOW"', "2.srv"),
        ('job_sort_key: "walltime HIGH"\njob_sort_key: "job_priority HIGH"', "3.srv"),
    ],
)
def test_job_sort_key(config, first):
    jobs = {
        "1.srv": a_job(WHOLE, Priority="0", listed={"walltime": "02:00:00"}),
        "2.srv": a_job(WHOLE, Priority="5"),
        "3.srv": a_job(WHOLE, Priority="9", listed={"walltime": "02:00:00"}),
    }
    assert first_of(jobs, {"sched_config": STOCK + config}) == first


def test_by_queue():
    queues = {"workq": a_queue(), "q2": a_queue(Priority="100"), "q3": a_queue(Priority="200")}
    jobs = {"1.srv": a_job(WHOLE), "2.srv": a_job(WHOLE, queue="q2")}
    unsorted = STOCK.replace("by_queue: True", "by_queue: False")
    assert first_of(jobs, {"sched_config": STOCK}, queues=queues) == "2.srv"
    assert first_of(jobs, {"sched_config": unsorted}, queues=queues) == "1.srv"
    jobs["3.srv"] = a_job(WHOLE, queue="q3")
    assert first_of(jobs, {"sched_config": unsorted}, queues=queues) == "3.srv"


def test_a_formula_without_value_is_0():
    server = {"job_sort_formula": "1/(ncpus-4)"}
    jobs = {"1.srv": a_job("4:ncpus=3", listed={"ncpus": "3"}),
            "2.srv": a_job(WHOLE, listed={"ncpus": "4"})}  # fmt: skip
    assert first_of(jobs, {}, server=server) == "2.srv"


# ------------------------------------------------------------------ fair share

SHARES = (
    "ann 50 root 10\nbob 51 root 90\nnone 52 root 0\nlab 53 root 100\neve 54 lab 1\nmax 55 lab 3"
)
FAIR = (
    STOCK.replace("fair_share: false", "fair_share: True") + "fairshare_usage_res: ncpus*walltime"
)


def test_shares_are_read():
    members, problems = read_members(SHARES + "\nbad line\nx 1 nobody 5\nann 1 root 2\n")
    assert len(problems) == 3
    standings = FairShare().standings(members, ["ann", "eve", "max", "none", "zoe"], DEFAULTS)
    assert [round(standings[name].share, 4) for name in standings] == [0.05, 0.125, 0.375, 0, 0]


def test_fair_share_orders():
    jobs = {"1.srv": a_job(WHOLE), "2.srv": a_job(WHOLE, user="bob")}
    assert first_of(jobs, {"sched_config": STOCK, "resource_group": SHARES}) == "1.srv"
    assert first_of(jobs, {"sched_config": FAIR, "resource_group": SHARES}) == "2.srv"


def test_turns():
    jobs = {f"{at}.srv": a_job("2:ncpus=4", user=user)
            for at, user in enumerate(("ann", "ann", "bob", "bob"))}  # fmt: skip
    texts = {"sched_config": FAIR, "resource_group": "ann 1 root 1\nbob 2 root 1"}
    assert starts(jobs, texts).keys() == {"0.srv", "2.srv"}


def test_without_shares_no_start():
    jobs = {"1.srv": a_job(), "2.srv": a_job(user="none")}
    texts = {"sched_config": FAIR, "resource_group": SHARES}
    assert starts(jobs, texts).keys() == {"1.srv"}
    texts["sched_config"] += "\nfairshare_enforce_no_shares: False\n"
    assert starts(jobs, texts).keys() == {"1.srv", "2.srv"}


def test_fair_share_in_a_formula():
    jobs = {"1.srv": a_job(WHOLE), "2.srv": a_job(WHOLE, user="bob")}
    server = {"job_sort_formula": "fairshare_perc"}
    assert first_of(jobs, {"resource_group": SHARES}, server=server) == "2.srv"


def observed(usage, now_s, jobs, config):
    parsed = Reader().read(some_tables(jobs))
    pairs = [(job, parsed.tables.jobs[name]) for name, job in parsed.jobs.items()]
    usage.observe(pairs, config, now_s)


def test_usage_grows_and_decays():
    config = read_sched_config(FAIR + "\nfairshare_decay_time: 00:01:00\n")
    usage, jobs = FairShare(), {"1.srv": running("(n1:ncpus=2)", listed={"ncpus": "2"})}
    observed(usage, NOW_S, jobs, config)
    assert usage.usage == {"ann": 0.0}
    observed(usage, NOW_S + 60, jobs, config)
    assert usage.usage == {"ann": 120.0}
    observed(usage, NOW_S + 61, jobs, config)
    assert usage.usage == {"ann": 61.0}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 99)), min_size=1, max_size=3,
                unique_by=lambda each: each[0]), st.lists(st.floats(0, 1e9), min_size=3, max_size=3))  # fmt: skip # noqa: E501
def test_shares_add_up(groups, used):
    text = "\n".join(f"{name} 1 root {shares}" for name, shares in groups)
    usage = FairShare(dict(zip("abc", used, strict=True)))
    names = [name for name, _ in groups]
    found = usage.standings(read_members(text)[0], names, DEFAULTS)
    assert sum(each.share for each in found.values()) == pytest.approx(1)
    assert all(0 <= each.tree_usage <= 1 and 0 <= each.factor <= 1 for each in found.values())


# ------------------------------------------------------------------ placement sets

RACKS = {f"n{at}": a_vnode(f"n{at}", rack=f"r{(at + 1) // 2}") for at in range(1, 5)}
BUSY = {"8.srv": running("(n1:ncpus=4)"), "9.srv": running("(n3:ncpus=4)")}


@pytest.mark.parametrize(
    ("server", "queue", "runs"),
    [
        ({}, {}, True),
        ({"node_group_key": "rack"}, {}, True),
        ({"node_group_enable": "True", "node_group_key": "rack"}, {}, False),
        ({"node_group_enable": "True"}, {"node_group_key": "rack"}, False),
        (
            {"node_group_enable": "True", "node_group_key": "host"},
            {"node_group_key": "rack"},
            False,
        ),
        ({"node_group_enable": "True", "node_group_key": "color"}, {}, True),
    ],
)
def test_node_group_key(server, queue, runs):
    jobs = {"1.srv": a_job("2:ncpus=3", "scatter")} | BUSY
    found = starts(jobs, {}, server=server, vnodes=RACKS, queues={"workq": a_queue(**queue)})
    assert bool(found) is runs
