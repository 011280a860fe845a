# SPDX-License-Identifier: Apache-2.0
"""Changes of a running service are logged: by whom, from what to what, with which result."""

import json
import os

import pytest

from tests.simulation.services import a_home, a_process, run
from tests.simulation.test_service_process import as_nobody, one_cycle


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def changes(home, *words):
    done = run("changes", "--socket", home / "o" / "s", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_changes_are_listed_with_author_and_result_also_after_a_restart(home):
    """Slow: starts two services and a command for each change."""
    at = ("--socket", home / "o" / "s")
    with a_process(home):
        one_cycle(home)
        assert changes(home) == "no change is logged\n"
        assert run("policy", "show", *at).returncode == 0
        assert run("policy", "set", "easy", *at).returncode == 0
        assert run("policy", "set", "no-such-preset", *at).returncode == 1
        assert run("unreserve", "nothing", *at).returncode == 1
        bounds = ("--lower", "1kW", "--until", "now+1hour")
        run("power", "corridor", *bounds, *at)
        run("coschedule", "off", *at)
        assert run("status", *at).returncode == 0
    with a_process(home):
        listed = json.loads(changes(home, "--json"))["changes"]
        methods = ["Policy", "Policy", "Unreserve", "Corridor", "Coscheduling", "Start"]
        assert [each["method"] for each in listed] == methods
        *others, ended = listed
        assert {each["uid"] for each in others} == {os.getuid()}
        assert "easy" in ended["before"]
        assert "slurm-like" in ended["after"]
        assert [each["done"] for each in listed[:3]] == [True, False, False]
        assert listed[0]["after"] == '{"set": "easy"}'
        assert "slurm" in listed[0]["before"]
        assert listed[1]["result"].startswith("refused: ")
        assert "easy" in listed[1]["before"]
        shown = changes(home, "-n", "2")
        assert "Coscheduling by " in shown
        assert "Policy" not in shown
        assert changes(home, "--since", "now+1hour") == "no change is logged\n"


def test_a_start_lists_what_differs_from_what_was_in_force(home):
    """Slow: starts three services. Keys that stay are not listed."""
    with a_process(home):
        pass
    with a_process(home, limits={"decisions": 200}, planning={"cron_days": 45}):
        pass
    (home / "in-force.json").write_text("[")
    with a_process(home, limits={"decisions": 300}):
        listed = json.loads(changes(home, "--json"))["changes"]
        assert [each["method"] for each in listed] == ["Start"]
        [told] = listed
        assert told["done"]
        before, after = (told[name].splitlines() for name in ("before", "after"))
        assert after == ["planning.cron_days: 45", "limits.decisions: 200"]
        assert [line.partition(":")[0] for line in before] == [
            "planning.cron_days", "limits.decisions",
        ]  # fmt: skip
        assert str(home) in told["user"]


def test_what_another_user_tries_is_logged_as_his(home):
    """Slow: starts a service and a command for each change."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    with a_process(home):
        one_cycle(home)
        there = ("--socket", home / "o" / "s")
        assert as_nobody("policy", "set", "easy", *there).returncode == 1
        refused = as_nobody("changes", *there)
        assert "administrators" in refused.stderr
        listed = json.loads(changes(home, "--json"))["changes"]
        assert {each["uid"] for each in listed} == {0, 65534}  # root tried something else
        [tried] = [each for each in listed if each["uid"] == 65534]
        assert (tried["user"], tried["method"], tried["done"]) == ("nobody", "Policy", False)
        assert tried["after"] == '{"set": "easy"}'
        assert "administrators" in tried["result"]
        assert tried["before"] == ""
    others = (home / "changes-of-others.jsonl").read_text().splitlines()
    assert [json.loads(line)["uid"] for line in others] == [65534]
