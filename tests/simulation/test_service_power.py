# SPDX-License-Identifier: Apache-2.0
"""Bounds of system power: operators, signal file and restarts, through a real service."""

import json
import logging
import os

import pytest
import yaml

from bridge.cli.main import main
from bridge.errors import BridgeError, ControllerError
from bridge.extensions.power.rules import NO_UPPER_W, power_of
from bridge.planning.site_rules.rules_text import parse_site
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import NEVER
from tests.simulation.metered import World, a_metered_service
from tests.simulation.services import a_config, a_home, a_service, operator_of
from tests.simulation.test_service_process import as_nobody

POWER = {
    "base": "100W",
    "nodes": [{"name": "all", "idle": "70W", "max": "250W"}],
    "corridor": [{"name": "contract", "upper": "2kW"}],
}
PLANNING = {"power": POWER}


@pytest.fixture
def home():
    with a_home() as made:
        yield made


def bounds(service):
    """The bounds by which the last cycle planned."""
    power = power_of(service.scheduling.cycles.site)
    return power.corridor.at(service.scheduling.cycles.published.snapshot.now_s)


def now(reply):
    step = reply.steps[0]
    return step.lower_w, step.upper_w, step.lower_by, step.upper_by


def test_an_entry_counts_from_the_next_cycle_on_until_it_is_undone(home, caplog):
    caplog.set_level(logging.INFO)
    with (
        a_service(home, planning=PLANNING) as service,
        OperatorClient(operator_of(home)) as operator,
        World(home) as world,
    ):
        assert bounds(service) == (0, 2000)
        assert now(operator.power()) == (0, 2000, "", "calendar: contract")
        reply = operator.corridor(pb.CorridorRequest(lower_w=300, upper_w=900, reason="test"))
        assert (reply.entry.id, reply.entry.state, reply.entry.until_s) == (1, "in force", 0)
        assert now(reply) == now(operator.power()) == (300, 900, "entry 1", "entry 1")
        assert "root (uid 0) (operators' socket) enters entry 1: 300 W to 900 W" in caplog.text
        assert "(test); undo it with 'schedbridge power corridor --undo 1'" in caplog.text
        world.cycle(1)
        assert bounds(service) == (300, 900)
        operator.corridor(pb.CorridorRequest(upper_w=-1, duration_s=50))
        world.cycle(1)
        assert bounds(service) == (300, NO_UPPER_W)
        world.cycle(50)
        assert bounds(service) == (300, 900)
        gone = operator.corridor(pb.CorridorRequest(undo=0))
        assert (gone.entry.id, now(gone)) == (1, (0, 2000, "", "calendar: contract"))
        world.cycle(1)
        assert bounds(service) == (0, 2000)
        back = operator.corridor(pb.CorridorRequest(restore=1))
        assert (back.entry.state, now(back)[:2]) == ("in force", (300, 900))
        assert "root (uid 0) (operators' socket) restores entry 1" in caplog.text


def test_entries_survive_a_restart(home):
    with (
        a_service(home, planning=PLANNING),
        OperatorClient(operator_of(home)) as operator,
        World(home),
    ):
        operator.corridor(pb.CorridorRequest(upper_w=900))
        operator.corridor(pb.CorridorRequest(lower_w=50, from_s=10**8, until_s=10**8 + 5))
        operator.corridor(pb.CorridorRequest(undo=1))
    with (
        a_service(home, planning=PLANNING) as service,
        OperatorClient(operator_of(home)) as operator,
        World(home),
    ):
        entries = operator.power().entries
        assert [(each.id, each.state) for each in entries] == [(1, "removed"), (2, "later")]
        assert entries[0].removed_by.startswith("root (uid 0)")
        assert bounds(service) == (0, 2000)
        assert operator.corridor(pb.CorridorRequest(upper_w=5)).entry.id == 3


def test_the_controller_calls_soon_and_when_the_bounds_change(home):
    with a_service(home, planning=PLANNING) as service, World(home) as world:
        replies = []
        answer = service.scheduling.cycles.run

        def run(*arguments):
            replies.append(answer(*arguments))
            return replies[-1]

        service.scheduling.cycles.run = run
        with OperatorClient(operator_of(home)) as operator:
            operator.corridor(pb.CorridorRequest(upper_w=900, from_s=world.now_s + 7))
        world.cycle(1)
        assert 0 < replies[-1].wake_after_ms <= 5000
        assert replies[-1].wake_after_s == 1


WRONG = [
    (pb.CorridorRequest(), "give bounds"),
    (pb.CorridorRequest(upper_w=5, undo=1), "give bounds"),
    (pb.CorridorRequest(lower_w=6, upper_w=5), "above the upper one"),
    (pb.CorridorRequest(lower_w=-1), "must be from 0"),
    (pb.CorridorRequest(upper_w=-2), "must be from 0"),
    (pb.CorridorRequest(upper_w=2**62), "must be from 0"),
    (pb.CorridorRequest(upper_w=5, until_s=1), "over already"),
    (pb.CorridorRequest(upper_w=5, until_s=5000, duration_s=5), "not both"),
    (pb.CorridorRequest(upper_w=5, from_s=2**62), "ten years"),
    (pb.CorridorRequest(upper_w=5, duration_s=2**62), "ten years"),
    (pb.CorridorRequest(upper_w=5, from_s=-7), "ten years"),
    (pb.CorridorRequest(undo=7), "has no entry 7"),
    (pb.CorridorRequest(restore=7), "has no entry 7"),
    (pb.CorridorRequest(undo=0), "no entry that could be removed"),
]


@pytest.fixture(scope="module")
def shared():
    with a_home() as home, a_service(home, planning=PLANNING) as service, World(home):
        yield home, service


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_makes_no_sense_changes_nothing(shared, dry_run):
    home, service = shared
    before = service.scheduling.parts["power"].corridor.entry_log()
    with OperatorClient(operator_of(home)) as operator:
        for request, problem in WRONG:
            requested = pb.CorridorRequest(dry_run=dry_run)
            requested.MergeFrom(request)
            with pytest.raises(ControllerError, match=problem):
                operator.corridor(requested)
    assert service.scheduling.parts["power"].corridor.entry_log() == before


def test_without_power_in_the_configuration_nothing_is_entered(home):
    with a_service(home), OperatorClient(operator_of(home)) as operator, World(home):
        reply = operator.power()
        assert (reply.bounded, now(reply)) == (False, (0, -1, "", ""))
        for dry_run in (False, True):
            with pytest.raises(ControllerError, match="power is not bounded here"):
                operator.corridor(pb.CorridorRequest(upper_w=5, dry_run=dry_run))


def test_who_draws_what(home):
    with (
        a_service(home, planning=PLANNING),
        OperatorClient(operator_of(home)) as operator,
        World(home) as world,
    ):
        world.cycle(1)  # a report in which the first job runs
        reply = operator.power()
        assert (reply.base_w, reply.idle_w, reply.jobs_w) == (100, 280, 360)
        assert (reply.lower_estimate_w, reply.estimate_w) == (380, 740)
        assert [(each.job.job_id, each.estimate_w, each.source) for each in reply.jobs] == [
            ("1", 500, "maximum of its nodes")
        ]
        planned = [(each.from_s, each.until_s, each.estimate_w) for each in reply.planned]
        assert planned == [
            (1001, 1060, 740), (1060, 1140, 1100), (1140, 1001 + 86_400, 380)
        ]  # fmt: skip


def test_a_dry_run_changes_nothing_and_names_the_jobs(home):
    with (
        a_service(home, planning=PLANNING) as service,
        OperatorClient(operator_of(home)) as operator,
        World(home) as world,
    ):
        world.cycle(1)
        reply = operator.corridor(pb.CorridorRequest(upper_w=1000, dry_run=True))
        assert (reply.entry.id, now(reply)[1]) == (1, 1000)
        assert service.scheduling.parts["power"].corridor.entry_log().entries == ()
        assert reply.effects_total == len(reply.effects)
        again = operator.corridor(pb.CorridorRequest(upper_w=2000, dry_run=True))
        assert again.effects_total == 0  # as it is


def test_the_configuration_is_read_again(home):
    with (
        a_service(home, planning=PLANNING) as service,
        World(home) as world,
        OperatorClient(operator_of(home)) as operator,
    ):
        operator.corridor(pb.CorridorRequest(lower_w=10))

        def after(planning):
            service._file = home / "bridge.yaml"
            service._file.write_text(a_config(home, planning=planning))
            service.reload()
            world.cycle(1)
            return power_of(service.scheduling.cycles.site) and bounds(service)

        assert after(PLANNING) == (10, 2000)
        assert after({"power": {**POWER, "corridor": [{"upper": "1kW"}]}}) == (10, 1000)
        assert after({}) is None
        assert after(PLANNING) == (10, 2000)


# ------------------------------------------------------------------ the signal file


def test_a_signal_file_is_followed(home, caplog):
    file = home / "signal.json"
    with (
        a_service(home, planning=PLANNING, power={"signal_file": str(file)}) as service,
        World(home) as world,
    ):
        follow = service.scheduling.parts["power"].signal

        def after(text):
            file.write_text(text)
            file.chmod(0o644)
            follow.look()
            world.cycle(1)
            return bounds(service)

        assert after('{"upper": "900W", "reason": "tariff"}') == (0, 900)
        assert after('{"upper": "900W", "lower": "5W"}') == (5, 900)
        entry_log = service.scheduling.parts["power"].corridor.entry_log()
        assert after('{"upper":"900W", "lower":"5W"}') == (5, 900)
        assert (
            service.scheduling.parts["power"].corridor.entry_log() is entry_log
        )  # it says the same
        assert [entry.group for entry in entry_log.entries] == ["signal"] * 2
        for broken in ('{"upper": "9', "", '{"upper": "many"}', "[" * 10_000, "x" * 70_000):
            assert after(broken) == (5, 900)
            assert follow.problem
        metrics = service._metrics.page().decode()
        assert "schedbridge_power_signal_up 0.0" in metrics
        assert "schedbridge_power_upper_watts 900.0" in metrics
        assert "schedbridge_power_lower_watts 5.0" in metrics
        with OperatorClient(operator_of(home)) as operator:
            assert "signal file: " in operator.power().problems[0]
        assert after('[{"upper": "800W"}]') == (0, 800)
        assert not follow.problem
        file.chmod(0o666)
        follow.look()
        assert "may be written by others (mode 0666)" in follow.problem
        file.unlink()
        follow.look()
        world.cycle(1)
        assert (bounds(service), follow.problem) == ((0, 2000), "")
        file.mkdir()
        follow.look()
        assert "directory" in follow.problem.lower() or "regular" in follow.problem


def test_what_a_signal_file_changes_is_listed(home):
    """The first change at once, the others at the end; what is refused changes nothing."""
    file = home / "signal.json"
    with a_service(home, planning=PLANNING, power={"signal_file": str(file)}) as service:
        follow = service.scheduling.parts["power"].signal
        for text in ('{"upper": "900W"}', '{"upper":"800W"}', '{"upper": "many"}', "[]"):
            file.write_text(text)
            file.chmod(0o644)
            follow.look()
        with OperatorClient(operator_of(home)) as operator:
            first, refused = operator.changes().changes
        assert (refused.method, refused.done) == ("SignalFile", False)
        assert "many" in refused.result
        assert (first.method, first.uid, first.done) == ("SignalFile", file.stat().st_uid, True)
        assert (first.before, first.after) == ("", "at most 900 W, at once until removed")
        log = service._changes
    last = log.last(9)[-1]
    assert (last.before, last.after) == (first.after, "")
    assert "the last of 2 changes" in last.result


def test_a_signal_file_of_a_stranger_does_not_count(home):
    file = home / "signal.json"
    file.write_text('{"upper": "1W"}')
    os.chown(file, 65534, 65534)
    with a_service(home, planning=PLANNING, power={"signal_file": str(file)}) as service:
        assert "who is not an administrator" in service.scheduling.parts["power"].signal.problem
        assert service.scheduling.parts["power"].corridor.entry_log().entries == ()
        with OperatorClient(operator_of(home)) as operator:
            [refused] = operator.changes().changes
        assert "who is not an administrator" in refused.result
        assert refused.uid == 65534


# ------------------------------------------------------------------ the command


def said(capsys, home, *words):
    """Exit code and output of `schedbridge power`."""
    try:
        code = main(["power", *words, "--socket", str(home / "o" / "s")]) or 0
    except SystemExit as end:
        code = end.code or 0
    found = capsys.readouterr()
    return code, found.out + found.err


def test_the_command(home, capsys):
    with a_service(home, planning=PLANNING), World(home) as world:
        world.cycle(1)
        code, text = said(capsys, home, "corridor", "300-900W", "--for", "2h", "--reason", "try")
        assert code == 0
        assert "entry 1 is entered: 300 W to 900 W" in text
        assert "the bounds are now 300 W to 900 W (entry 1)" in text
        assert "undo this with 'schedbridge power corridor --undo 1'" in text
        code, text = said(capsys, home, "corridor", "--list")
        assert (code, "try" in text, "root (uid 0)" in text) == (0, True, True)
        code, text = said(capsys, home, "show")
        assert code == 0
        for words in ("740 W by estimate", "idle nodes 280 W", "# planned", "maximum of its nodes"):
            assert words in text
        code, text = said(capsys, home, "corridor", "--upper", "700W", "--dry-run")
        assert (code, "would be entered: at most 700 W" in text) == (0, True)
        code, text = said(capsys, home, "corridor", "--undo")
        assert (code, "entry 1 is removed" in text) == (0, True)
        code, text = said(capsys, home, "corridor", "--restore", "1", "--json")
        assert (code, json.loads(text)["entry"]["id"]) == (0, 1)
        code, text = said(capsys, home, "show", "--json")
        assert json.loads(text)["steps"][0]["upper_w"] == 900
        code, text = said(capsys, home, "corridor", "--undo", "9")
        assert (code, "has no entry 9" in text) == (1, True)


def test_what_nodes_draw_is_fitted_to_what_meters_said(home, capsys):
    with a_metered_service(home, planning=PLANNING) as (_, node), World(home) as world:
        world.cycle(1)
        code, text = said(capsys, home, "calibrate")
        assert (code, "no agent reports the power of any of its nodes" in text) == (1, True)
        assert len(text.strip().splitlines()) == 1
        node.attend(world.controller.nodes.table.names[0])
        for watts, busy, source, words in (
            (90, 0, "model", "none of them has a meter"),
            (71, 0, "rapl", "at loads of 0% only: let one be idle for a minute, and run a job"),
        ):
            node.reads(watts, busy, source)
            code, text = said(capsys, home, "calibrate")
            assert (code, words in text) == (1, True), text
        node.reads(260, 4)
        code, text = said(capsys, home, "calibrate")
        assert code == 0
        assert "of 1 of 4 nodes at loads of 0% to 100%" in text
        assert "stated were 70 W to 250 W" in text
        nodes = yaml.safe_load(text)["nodes"]
        assert nodes == [{"name": "all", "idle": "71W", "max": "260W"}]
        parse_site({"power": {**POWER, "nodes": nodes}})
        code, text = said(capsys, home, "calibrate", "--json")
        found = json.loads(text)["types"][0]
        assert (code, found["idle_w"], found["max_w"], found["problem"]) == (0, 71, 260, "")


def test_errors_of_the_service_are_told(home):
    with (
        a_service(home, planning=PLANNING),
        OperatorClient(operator_of(home)) as operator,
        pytest.raises(BridgeError, match="has not called yet"),
    ):
        operator.power()


# ------------------------------------------------------------------ what a change would do

DELAYED, HELD = pb.CORRIDOR_EFFECT_KIND_DELAYED, pb.CORRIDOR_EFFECT_KIND_HELD


@pytest.mark.parametrize(
    ("bounds_", "expected"),
    [
        # 380 W without jobs, 180 W a busy node: job 2 draws 360 W until 1080, job 3 180 W.
        ({"upper_w": 920, "from_s": 1061}, []),
        ({"upper_w": 919, "from_s": 1061}, [("3", DELAYED, 1080)]),
        ({"upper_w": 560}, [("3", DELAYED, 1080)]),
        ({"upper_w": 559}, [("3", HELD, NEVER)]),
    ],
)
def test_a_dry_run_tells_what_then_happens(home, bounds_, expected):
    jobs = [(1, 60, 60, 2), (2, 80, 80, 2), (3, 30, 30, 1)]
    with (
        a_service(home, planning=PLANNING, policy="conservative"),
        World(home, jobs) as world,
        OperatorClient(operator_of(home)) as operator,
    ):
        assert world.cycle(1).start_s.tolist() == [1060]
        told = operator.corridor(pb.CorridorRequest(dry_run=True, **bounds_))
        found = [(each.job.job_id, each.kind, each.start_s or NEVER) for each in told.effects]
        assert (found, told.effects_total) == (expected, len(expected))
        assert all(each.job.start_s == 1060 for each in told.effects)
        assert world.cycle(2).start_s.tolist() == [1060]
        operator.corridor(pb.CorridorRequest(**bounds_))
        start_s = expected[0][2] if expected else 1060
        assert world.cycle(2).start_s.tolist() == [start_s]
        operator.corridor(pb.CorridorRequest(undo=0))
        assert world.cycle(2).start_s.tolist() == [1060]


def test_ordinary_users_look_and_change_nothing(home):
    """Slow: each command is a process of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with a_service(home, planning=PLANNING) as service, World(home):
        at = ("--socket", home / "o" / "s")
        done = as_nobody("power", "corridor", "--upper", "1W", *at)
        assert done.returncode == 1
        assert "only administrators may change the corridor of power" in done.stderr
        assert service.scheduling.parts["power"].corridor.entry_log().entries == ()
        looked = as_nobody("power", "show", *at)
        assert (looked.returncode, "contract" in looked.stdout) == (0, True)
