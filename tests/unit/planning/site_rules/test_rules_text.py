# SPDX-License-Identifier: Apache-2.0
"""Limits and FreePools as YAML says them."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from bridge.errors import ConfigError
from bridge.extensions.sharing.rules import (
    Coschedule,
    CoschedulingRules,
    Scope,
    rules_of,
    sharing_rules,
)
from bridge.input_problems import ConfigProblems
from bridge.model.rules.limits import (
    ALWAYS,
    Access,
    Bound,
    ConsumerKind,
    FreePool,
    Items,
    Limit,
    Rules,
    Validity,
)
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.resize_limits import ResizeLimit
from bridge.model.rules.site import Site
from bridge.planning.site_rules.lowered_rules import lower, unknown_to
from bridge.planning.site_rules.values_text import bounds, duration, items
from bridge.service.config import parse, to_mapping
from bridge.units import DAY_S, NEVER
from schedbridge_contracts.builders import a_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import parse_rules

DOCUMENT = Path(__file__).parents[4] / "docs" / "LIMITS.md"


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


def read(text: str) -> Rules:
    return parse(f"planning:\n{text}", "f.yaml").planning.rules()


def test_nothing_is_no_rules():
    assert parse("", "f").planning.rules() == Rules()
    assert parse("planning:", "f").planning.rules() == Rules()
    assert read("  limits:\n  free_pools:") == Rules()
    assert parse_rules(None) == Rules()


def test_a_limit_with_everything():
    rules = read(
        "  timezone: Europe/Berlin\n"
        "  limits:\n"
        "    - {user: alice, resource: cpus, items: 30/45%, duration: 4d3h, area: 1024h,\n"
        "       valid: {from: 2017-08-01, until: 2017-08-31}}\n"
    )
    begin, end = at("2017-08-01", "Europe/Berlin"), at("2017-09-01", "Europe/Berlin")
    assert rules == Rules(
        (
            Limit(
                ConsumerKind.USER, "alice", "cpus", Items(30, 45.0), 99 * 3600, 1024 * 3600,
                Validity(begin, end),
            ),
        ),
        (),
        "Europe/Berlin",
    )  # fmt: skip


def test_defaults_of_a_limit_lift_what_is_said_of_all_resources():
    assert read("  limits: [{account: g1}]").limits == (Limit(ConsumerKind.ACCOUNT, "g1", "*"),)


def test_free_pools_with_everything():
    rules = read(
        "  free_pools:\n"
        "    - name: small\n"
        "      resource: mem\n"
        "      keep: 64g/10%\n"
        "      access:\n"
        "        - {users: [a], accounts: [b], partitions: [c], cpus: '< 4', time: '<= 2h'}\n"
        "      valid: {cron: '0  8 * * mon', length: 10h, until: 2030-01-01 12:00}\n"
        "    - {name: gpus, nodes: {having: gpu, features: a&b, names: [n1]}}\n"
    )
    assert rules.free_pools == (
        FreePool(
            "small", "mem", Items(65536, 10.0),
            (Access(frozenset("a"), frozenset("b"), frozenset("c"),
                    (Bound("cpus", 0, 3), Bound("time", 0, 7200))),),
            Validity(0, at("2030-01-01 12:00"), "0 8 * * mon", 36000),
        ),
        FreePool("gpus", "", Items(percent=100.0), (), ALWAYS, NodeSet(("n1",), "a&b", "gpu")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("valid", "start_s", "end_s"),
    [
        ("always", 0, NEVER),
        ("{until: 2017-08-31}", 0, at("2017-09-01")),
        ("{until: 2017-08-31 18:00}", 0, at("2017-08-31 18:00")),
        ("{until: '2017-08-31T18:00+02:00'}", 0, at("2017-08-31 16:00")),
        ("{until: 2017-08-31 18:00:00}", 0, at("2017-08-31 18:00")),
        ("{from: 2017-08-01}", at("2017-08-01"), NEVER),
    ],
)
def test_absolute_validities(valid, start_s, end_s):
    (limit,) = read(f"  limits: [{{user: a, items: 50%, valid: {valid}}}]").limits
    assert limit.validity == Validity(start_s, end_s)


def test_durations_items_and_bounds():
    assert [duration(text) for text in ("7d", "4d3h", "1h30m", "45s", "1d 2h")] == [
        7 * DAY_S, 99 * 3600, 5400, 45, 26 * 3600,
    ]  # fmt: skip
    assert items("640", "cpus") == Items(640)
    assert items("45%", "cpus") == Items(percent=45.0)
    assert items("30/45%", "cpus") == Items(30, 45.0)
    assert items("0", "cpus") == Items(0)
    assert items("64G", "mem") == Items(65536)
    assert items("512k", "mem") == Items(1)
    assert items("unlimited", "cpus") is None
    assert [bounds(text, "cpus").maximum for text in ("< 4", "<=4", "4", 4)] == [3, 4, 4, 4]
    assert [bounds(text, "time").maximum for text in ("< 1h", "<= 1h")] == [3599, 3600]
    assert bounds("< 2g", "mem") == Bound("mem", 0, 2047)
    assert [bounds(text, "cpus") for text in (">= 4", "> 4", "= 4", ">= 4, < 8")] == [
        Bound("cpus", 4), Bound("cpus", 5), Bound("cpus", 4, 4), Bound("cpus", 4, 7),
    ]  # fmt: skip
    assert bounds("> 12h", "time") == Bound("time", 12 * 3600 + 1)
    assert bounds(">= 66g", "mem") == Bound("mem", 66 * 1024)


def test_percentages_and_numbers_the_larger_counts():
    assert Items(30, 45.0).of(100) == 45
    assert Items(30, 45.0).of(60) == 30
    assert Items(percent=33.3).of(10) == 3
    assert Items(percent=33.3).of(10, round_up=True) == 4
    assert Items(percent=20.0).of(9_920, round_up=True) == 1984  # exact, not 1985
    assert Items().of(10) == 0


PROBLEMS = {
    "nobody": ("limits: [{items: 50%}]", "limits.0: must name one of user, account, partition"),
    "two": ("limits: [{user: a, account: b}]", "limits.0: must name one of user, account"),
    "empty": ("limits: [{user: ''}]", "limits.0: user must not be empty"),
    "unknown key": ("limits: [{user: a, item: 3}]", "limits.0.item: unknown key; there are user, "),
    "items": ("limits: [{user: a, resource: cpus, items: lots}]", "limits.0: must be a number, a"),
    "yes": ("limits: [{user: a, resource: cpus, items: yes}]", "limits.0.items: "),
    "percent": ("limits: [{user: a, items: 120%}]", "limits.0: is more than 100%"),
    "all": ("limits: [{user: a, items: 12}]", "limits.0: items of resource '*' must be a percent"),
    "jobs": ("limits: [{user: a, resource: jobs, items: 5%}]", "limits.0: must be a number: there"),
    "memory": ("limits: [{user: a, resource: gpu, items: 5g}]", "limits.0: has a size of memory"),
    "duration": ("limits: [{user: a, duration: 3600}]", "limits.0.duration: must be a duration as"),
    "no duration": ("limits: [{user: a, duration: 0d}]", "limits.0.duration: must be longer than"),
    "date": ("limits: [{user: a, valid: {until: soon}}]", "limits.0.valid.until: must be a date"),
    "cron": (
        "limits: [{user: a, valid: {cron: '0 8 * *', length: 1h}}]",
        "limits.0.valid.cron: has five fields",
    ),
    "no length": ("limits: [{user: a, valid: {cron: '0 8 * * *'}}]", "limits.0.valid: cron and le"),
    "no validity": ("limits: [{user: a, valid: {}}]", "limits.0.valid: must state from, until, or"),
    "valid key": ("limits: [{user: a, valid: {til: 1}}]", "limits.0.valid.til: unknown key; there"),
    "no list": ("limits: {user: a}", "limits: "),
    "pool": ("free_pools: [{name: x}]", "free_pools.0: must name either resource or nodes"),
    "both": (
        "free_pools: [{name: x, resource: cpus, nodes: {having: gpu}}]",
        "free_pools.0: must name either resource or nodes",
    ),
    "no name": ("free_pools: [{resource: cpus}]", "free_pools.0.name: is missing"),
    "part of nodes": (
        "free_pools: [{name: x, keep: 2, nodes: {having: gpu}}]", "free_pools.0: keep: of nodes",
    ),
    "keep": ("free_pools: [{name: x, resource: cpus, keep: unlimited}]", "free_pools.0: keep: mu"),
    "kept jobs": ("free_pools: [{name: x, resource: jobs}]", "free_pools.0: resource: nothing can"),
    "access": (
        "free_pools: [{name: x, resource: cpus, access: [{cpus: few}]}]",
        "free_pools.0.access.0: cpus: must be a bound as",
    ),
    "met by nothing": (
        "free_pools: [{name: x, resource: cpus, access: [{cpus: '> 4, < 5'}]}]",
        "free_pools.0.access.0: cpus: '> 4, < 5' can never be met",
    ),
    "sign": (
        "free_pools: [{name: x, resource: cpus, access: [{cpus: '=> 4'}]}]",
        "free_pools.0.access.0: cpus: must be a bound as '< 4', '>= 4' or '>= 4, <= 8', not '=> 4'",
    ),
    "empty chunk": (
        "free_pools: [{name: x, nodes: {having: gpu}, access: [{chunk: {}}]}]",
        "free_pools.0.access.0.chunk: must state a resource and its bound",
    ),
    "chunk's bound": (
        "free_pools: [{name: x, nodes: {having: gpu}, access: [{chunk: {mem: lots}}]}]",
        "free_pools.0.access.0.chunk: mem: must be a bound as",
    ),
    "chunk's time": (
        "free_pools: [{name: x, nodes: {having: gpu}, access: [{chunk: {time: 1h}}]}]",
        "free_pools.0.access.0.chunk: time is of the whole job: state it beside chunk",
    ),
    "chunk of a resource": (
        "free_pools: [{name: x, resource: mem, access: [{chunk: {mem: '>= 1g'}}]}]",
        "free_pools.0: access: chunk is for pools of nodes; a resource is kept from jobs",
    ),
    "no access": (
        "free_pools: [{name: x, resource: cpus, access: [{}]}]",
        "free_pools.0.access.0: must state something",
    ),
    "user": (
        "free_pools: [{name: x, resource: cpus, access: [{user: bob}]}]",
        "free_pools.0.access.0: knows users (a list), not user",
    ),
    "features": (
        "free_pools: [{name: x, nodes: {features: 'a&'}}]", "free_pools.0.nodes: features: a featu",
    ),
    "no nodes": ("free_pools: [{name: x, nodes: {}}]", "free_pools.0.nodes: must state names"),
    "twice": (
        "free_pools: [{name: x, resource: cpus}, {name: x, resource: gpu}]",
        "two free_pools are called 'x'",
    ),
    "zone": ("timezone: Berlin", "timezone: 'Berlin' is not a time zone"),
    "zone path": ("timezone: ../../etc/passwd", "timezone: '../../etc/passwd' is not a time zone"),
}  # fmt: skip


@each(case=[*PROBLEMS])
def test_every_problem_names_its_key(case):
    text, expected = PROBLEMS[case]
    with pytest.raises(ConfigProblems) as caught:
        parse(f"planning: {{{text}}}", "f.yaml")
    shown = str(caught.value)
    assert "\n" not in shown
    assert shown.startswith("f.yaml: planning")
    assert expected in shown
    with pytest.raises(ConfigError) as alone:
        parse_rules(yaml.safe_load(f"{{{text}}}"), "policy.plan.rules")
    assert alone.value.key.startswith("policy.plan.rules")


def test_what_is_printed_is_read_again():
    text = yaml.safe_dump({"planning": documented()})
    config = parse(text, "f")
    again = parse(yaml.safe_dump(to_mapping(config)), "f")
    assert again.planning.rules() == config.planning.rules()
    assert len(config.planning.rules().free_pools) >= 3


def documented() -> dict[str, object]:
    """All examples of docs/LIMITS.md as one section."""
    whole: dict[str, object] = {
        "limits": [], "free_pools": [], "resizes": [], "coscheduling": [],
    }  # fmt: skip
    for block in DOCUMENT.read_text().split("```yaml\n")[1:]:
        section = yaml.safe_load(block.split("```")[0])["planning"]
        for key, value in section.items():
            if isinstance(value, list):
                whole[key] = [*whole[key], *value]  # type: ignore[misc]
            else:
                whole[key] = value
    return whole


def test_the_document_s_examples_are_the_papers():
    rules = parse_rules(documented())
    august = Validity(at("2017-08-01", "Europe/Berlin"), at("2017-09-01", "Europe/Berlin"))
    assert (
        Limit(ConsumerKind.USER, "alice", "cpus", Items(640), 99 * 3600, None, august)
        in rules.limits
    )
    small, gpus, maintenance = rules.free_pools[:3]
    assert small.keep == Items(10, 20.0)
    assert small.access == (Access(bounds=(Bound("cpus", 0, 3), Bound("time", 0, 3599))),)
    assert len(gpus.access) == 3
    assert maintenance.nodes == NodeSet(having="gpu")
    assert maintenance.validity == Validity(cron="0 8 * */2 mon#1", length_s=36000)
    assert datetime.fromtimestamp(august.start_s, UTC).isoformat() == "2017-07-31T22:00:00+00:00"


def test_the_document_s_node_specific_minimum_is_the_papers():
    smp = parse_rules(documented()).free_pools[3]
    assert smp.name == "large memory"
    assert smp.access == (
        Access(chunk=(Bound("mem", 66 * 1024),)),
        Access(chunk=(Bound("cpus", 17),)),
        Access(bounds=(Bound("time", 0, 12 * 3600),)),
    )
    assert ", or ".join(str(access) for access in smp.access) == (
        "mem >= 66g in one chunk, or cpus >= 17 in one chunk, or time <= 12h"
    )


def test_nodes_are_named_by_hostlists():
    def pool(names):
        return {"free_pools": [{"name": "p", "nodes": {"names": names}}]}

    (found,) = parse_rules(pool("n[1-3],big1")).free_pools
    assert found.nodes is not None
    assert found.nodes.names == ("big1", "n1", "n2", "n3")
    assert parse_rules(pool(["n[1-3]", "big1"])).free_pools[0].nodes.names[-1] == "big1"
    with pytest.raises(ConfigError, match="is not a hostlist"):
        parse_rules(pool("n[1-"))
    with pytest.raises(ConfigError, match="more than"):
        parse_rules(pool("n[1-200000]"))


def test_virtual_memory_is_memory_wherever_it_is_said():
    assert bounds(">= 80g", "vmem") == Bound("vmem", 80 * 1024, NEVER)
    rules = parse_rules(
        {
            "limits": [{"user": "*", "resource": "vmem", "items": "64g"}],
            "free_pools": [
                {"name": "p", "resource": "vmem", "keep": "1g", "access": [{"vmem": ">= 80g"}]}
            ],
        }
    )
    assert rules.limits[0].items == Items(64 * 1024)
    snapshot = a_snapshot(nodes=1, jobs=[a_job(shared=True, mem_mib=512)])()
    assert unknown_to(Site(rules), snapshot) == ()
    assert len(lower(Site(rules), snapshot).constraints) == 2


@pytest.mark.parametrize(
    ("cron", "days", "many"),
    [
        ("* * * * *", 60, False),
        ("* * 1-31 * *", 70, True),
        ("0-59 0-23 * * *", 70, True),
        ("*/5 * * * *", 3650, True),
        ("0 8 * */2 mon#1", 3650, False),
    ],
)
def test_rules_that_repeat_come_into_force_so_often_at_most(cron, days, many):
    valid = {"cron": cron, "length": "30s"}
    rules = {"limits": [{"user": "*", "items": "5%", "valid": valid}], "cron_days": days}
    if not many:
        assert parse_rules(rules).limits
        return
    with pytest.raises(ConfigError, match="more than 100000: give a smaller cron_days"):
        parse_rules(rules)


def test_two_clocks_in_one_validity_are_compared_in_the_timezone_of_the_section():
    mixed = {"from": "2017-08-31T11:00+00:00", "until": "2017-08-31T12:00"}
    limit = {"user": "*", "resource": "cpus", "items": 1, "valid": mixed}
    assert parse_rules({"limits": [limit], "timezone": "UTC"}).limits
    with pytest.raises(ConfigError, match="before it begins"):
        parse_rules({"limits": [limit], "timezone": "Europe/Berlin"})


@pytest.mark.parametrize(
    "valid",
    [
        {"from": "2017-08-31", "until": "2017-08-01"},
        {"from": "2017-08-31 18:00", "until": "2017-08-31 18:00"},
        {"from": "2017-09-02", "until": "2017-09-01", "cron": "0 8 * * *", "length": "1h"},
    ],
)
def test_a_validity_that_ends_before_it_begins_is_refused(valid):
    with pytest.raises(ConfigError, match=r"limits\.0\.valid.*before it begins"):
        parse_rules({"limits": [{"user": "a", "items": "5%", "valid": valid}]})


def test_a_validity_of_one_day_is_none():
    (limit,) = parse_rules(
        {"limits": [{"user": "a", "valid": {"from": "2017-08-31", "until": "2017-08-31"}}]}
    ).limits
    assert limit.validity.end_s - limit.validity.start_s == DAY_S


def test_limits_on_resizes_are_read():
    text = 'planning: {resizes: [{user: "*", apart: 10m, per_hour: 12, extra_nodes: 8},'
    site = parse(f"{text} {{partition: debug, never: true}}]}}", "f.yaml").planning.site()
    assert site.resizes == (
        ResizeLimit(ConsumerKind.USER, "*", apart_s=600, per_hour=12, extra_nodes=8),
        ResizeLimit(ConsumerKind.PARTITION, "debug", never=True),
    )


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("{per_hour: 1}", "must name one of user, partition"),
        ("{user: a, partition: b}", "must name one of user, partition"),
        ('{user: ""}', "must not be empty"),
        ("{partition: b, per_hour: 1}", "per_hour is for users"),
        ("{user: a, apart: soon}", "must be a duration"),
        ("{user: a, per_hour: -1}", "greater than or equal to 0"),
        ("{user: a}, {user: a}", "two resizes are of 'a'"),
    ],
)
def test_wrong_limits_on_resizes_are_named(items, words):
    with pytest.raises(ConfigProblems) as problems:
        parse(f"planning: {{resizes: [{items}]}}", "f.yaml")
    assert words in str(problems.value)


def test_who_shares_nodes_is_read():
    text = (
        "planning: {coscheduling: [{partition: batch, scope: all, consent: host,"
        ' max_slowdown: 0.2, memory_margin: 0, max_mean_harm: 0.03}, {partition: "*"}]}'
    )
    site = parse(text, "f.yaml").planning.site()
    assert sharing_rules(site) == (
        CoschedulingRules("batch", Scope.ALL, Coschedule.HOST, 0.2, 0.0, 0.03),
        CoschedulingRules("*"),
    )
    assert rules_of(sharing_rules(site), "batch").scope is Scope.ALL
    assert rules_of(sharing_rules(site), "other").consent is Coschedule.NEVER
    assert rules_of(sharing_rules(site)[:1], "other") is None


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ("{}", "partition"),
        ("{partition: a, scope: group}", "'user', 'account' or 'all'"),
        ("{partition: a, consent: yes}", "'host', 'guest', 'both' or 'never'"),
        ("{partition: a, max_slowdown: 10%}", "max_slowdown"),
        ("{partition: a, max_slowdown: 1.5}", "less than or equal to 1"),
        ("{partition: a, quota: 5}", "quota"),
        ("{partition: a}, {partition: a}", "two entries of coscheduling are of partition 'a'"),
    ],
)
def test_wrong_words_on_sharing_are_named(items, words):
    with pytest.raises(ConfigProblems) as problems:
        parse(f"planning: {{coscheduling: [{items}]}}", "f.yaml")
    assert words in str(problems.value)
