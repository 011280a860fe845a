# SPDX-License-Identifier: Apache-2.0
"""A reload is logged with its keys, from what to what; one hides no other."""

import json

import pytest

from bridge.registry import parse_policy
from bridge.rpc.operators.changes import DONE
from bridge.service.config import parse
from bridge.service.config_changes import (
    MAX_VALUE,
    differences,
    in_force,
    reload_change,
    start_change,
)
from bridge.state.change_files import MAX_TEXT
from tests.simulation.services import a_config

CPUS = {"cpus": 2}


def a_limit(items, user="*"):
    return {"user": user, "resource": "cpus", "items": items}


def read(home, **settings):
    return parse(a_config(home, **settings), "test")


def found(home, former, present):
    pair = (read(home, **each) for each in (former, present))
    return [(each.key, each.before, each.after) for each in differences(*pair)]


def test_only_the_keys_that_differ_are_named(tmp_path):
    former = {"planning": {"limits": [a_limit(1), a_limit(2, "ann")], "cron_days": 30}}
    present = {"planning": {"limits": [a_limit(1), a_limit(7, "ann")], "cron_days": 60}}
    assert sorted(found(tmp_path, former, present)) == [
        ("planning.cron_days", "30", "60"), ("planning.limits[1].items", '"2"', '"7"'),
    ]  # fmt: skip
    assert found(tmp_path, present, present) == []


def test_lists_of_different_lengths_are_named_as_a_whole(tmp_path):
    for one, other in (([], [a_limit(1)]), ([a_limit(1)], [a_limit(1), a_limit(2, "ann")])):
        [(key, before, after)] = found(
            tmp_path, {"planning": {"limits": one}}, {"planning": {"limits": other}}
        )
        assert key == "planning.limits"
        assert (before.count("cpus"), after.count("cpus")) == (len(one), len(other))


def test_a_key_that_one_lacks_is_not_set(tmp_path):
    protects = ({}, {"gpu": CPUS}), ({"fpga": CPUS, "gpu": CPUS}, {"fpga": CPUS})
    for one, other in protects:
        [(key, before, after)] = found(
            tmp_path, {"planning": {"protect": one}}, {"planning": {"protect": other}}
        )
        assert key == "planning.protect.gpu"
        assert "not set" in (before, after)
        assert before != after


def test_a_long_value_hides_no_other_key(tmp_path):
    many = [a_limit(n, f"user{n}") for n in range(400)]
    former = {"planning": {"cron_days": 30, "timezone": "UTC"}}
    present = {"planning": {"limits": many, "cron_days": 60, "timezone": "Europe/Berlin"}}
    pair = differences(read(tmp_path, **former), read(tmp_path, **present))
    assert max(len(each.after) for each in pair) == MAX_VALUE
    change = reload_change(tmp_path / "bridge.yaml", pair, DONE, 7)
    assert len(change.after) < MAX_TEXT
    for told in ("planning.cron_days: 60", 'planning.timezone: "Europe/Berlin"', "user0"):
        assert told in change.after


def test_what_needs_a_restart_is_told(tmp_path):
    former = {"planning": {"cron_days": 30}}
    for settings in (["limits"], ["limits", "resizing"]):
        others = {"limits": {"decisions": 200}, "resizing": {"grant_s": 31}}
        present = {"planning": {"cron_days": 60}, **{name: others[name] for name in settings}}
        pair = differences(read(tmp_path, **former), read(tmp_path, **present))
        change = reload_change(tmp_path / "bridge.yaml", pair, DONE, 7)
        assert change.done
        needed = {"limits": "limits.decisions", "resizing": "resizing.grant_s"}
        for name, key in needed.items():
            assert (key in change.result) == (name in settings)
        assert "planning" not in change.result


def test_the_author_is_the_signal_and_whose_file_it_is(tmp_path):
    file = tmp_path / "bridge.yaml"
    change = reload_change(file, [], "refused: no", 7)
    assert (change.uid, change.method, change.done) == (-1, "Reload", False)
    assert change.user == f"SIGHUP, {file} of an unknown user"
    file.write_text("")
    uid = file.stat().st_uid
    assert f"(uid {uid})" in reload_change(file, [], DONE, 7).user


@pytest.mark.parametrize("planning", [{"limits": [a_limit(5)]}, {"protect": {"gpu": CPUS}}])
def test_the_same_configuration_differs_in_nothing(tmp_path, planning):
    assert found(tmp_path, {"planning": planning}, {"planning": planning}) == []


def test_a_start_is_compared_with_what_was_in_force(tmp_path):
    """Also a policy that was set meanwhile; keys that only one of two versions has are named."""
    config = read(tmp_path)
    own, other = config.policy_spec, parse_policy("conservative")
    file = tmp_path / "bridge.yaml"
    present = in_force(config, own)
    assert start_change(file, in_force(config, own), present, 7) is None
    ended = start_change(file, in_force(config, other), present, 7)
    assert 'policy.name: "conservative"' in ended.before.splitlines()
    assert 'policy.name: "slurm-like"' in ended.after.splitlines()
    changed = read(tmp_path, limits={"decisions": 200}, planning={"cron_days": 45})
    told = start_change(None, present, in_force(changed, own), 7)
    assert told.after.splitlines() == ["planning.cron_days: 45", "limits.decisions: 200"]
    assert told.done
    older = json.dumps({"removed": 1, **json.loads(present)})
    assert start_change(file, older, present, 7).after == "removed: not set"
    for broken in ("", "[1]", "7"):
        with pytest.raises(ValueError, match=r"."):
            start_change(file, broken, present, 7)
