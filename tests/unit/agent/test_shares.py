# SPDX-License-Identifier: Apache-2.0
"""Shares of jobs on a node: what is in force, what is given back, and who sees to it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.guardian import take_over
from bridge.extensions.sharing.on_nodes.keeper import ABSENT_S, ShareKeeper
from bridge.extensions.sharing.on_nodes.record import Recorded, ShareRecord
from bridge.extensions.sharing.on_nodes.running import ShareThread
from bridge.extensions.sharing.on_nodes.wanted import (
    MAX_LEASE_S,
    MAX_SHARES,
    Share,
    bounded,
    is_job,
)
from tests.unit.agent.made_up import make_process
from tests.unit.agent.trees import NODE, Clock, Tree, ends, guest, wait_until

# ---------------------------------------------------------------- version 2


def test_weight_and_quota_are_written_once_the_job_is_there(
    tree: Tree, make: Callable[[], ShareKeeper]
) -> None:
    keeper = make()
    keeper.order(1, 6, [guest("7")])
    assert [each.method for each in keeper.look()] == [""]
    tree.job("7")
    assert [each.method for each in keeper.look()] == ["cgroup-v2"]
    assert tree.shows("7") == ("1", "100000 100000")


def test_looking_again_writes_nothing(tree: Tree, make: Callable[[], ShareKeeper]) -> None:
    keeper, folder = make(), tree.job("7")
    keeper.order(1, 6, [guest("7")])
    keeper.look()
    before = [(folder / name).stat().st_mtime_ns for name in ("cpu.max", "cpu.weight")]
    os.utime(folder / "cpu.max", ns=(1, 1))
    keeper.look()
    assert (folder / "cpu.max").stat().st_mtime_ns == 1
    assert (folder / "cpu.weight").stat().st_mtime_ns == before[1]


def test_what_another_wrote_is_put_right(tree: Tree, make: Callable[[], ShareKeeper]) -> None:
    keeper, folder = make(), tree.job("7")
    keeper.order(1, 6, [guest("7")])
    keeper.look()
    (folder / "cpu.max").write_text("max 100000\n")
    keeper.look()
    assert tree.shows("7")[1] == "100000 100000"


def test_a_job_without_an_order_has_its_full_share(
    tree: Tree, make: Callable[[], ShareKeeper]
) -> None:
    keeper = make()
    tree.job("7"), tree.job("8")
    keeper.order(1, 6, [guest("7"), Share(NODE, "8", milli_cpus=3000)])
    keeper.look()
    assert tree.shows("8") == ("100", "300000 100000")
    keeper.order(2, 6, [])
    keeper.look()
    assert tree.shows("7") == tree.shows("8") == ("100", "max 100000")
    assert keeper.is_idle


def test_after_the_lease_guests_fall_back_and_hosts_are_free(
    tree: Tree, make: Callable[[], ShareKeeper], clock: Clock
) -> None:
    keeper = make()
    tree.job("7"), tree.job("8")
    keeper.order(1, 6, [guest("7", 2000, 50), Share(NODE, "8", milli_cpus=3000)])
    keeper.look()
    clock.now_s += 5.9
    keeper.look()
    assert tree.shows("7") == ("50", "200000 100000")
    clock.now_s += 0.2
    keeper.look()
    assert tree.shows("7") == ("1", "20000 100000")
    assert tree.shows("8") == ("100", "max 100000")
    keeper.order(1, 6, [guest("7", 2000, 50), Share(NODE, "8", milli_cpus=3000)])
    keeper.look()
    assert tree.shows("7") == ("50", "200000 100000")


def test_no_lease_is_longer_than_the_bound(
    tree: Tree, make: Callable[[], ShareKeeper], clock: Clock
) -> None:
    keeper = make()
    tree.job("7")
    keeper.order(1, 3600, [guest("7", 2000, 50)])
    clock.now_s += MAX_LEASE_S + 0.1
    keeper.look()
    assert tree.shows("7") == ("1", "20000 100000")
    assert MAX_LEASE_S < 10


def test_a_new_agent_finds_what_the_one_before_did(
    tree: Tree, make: Callable[[], ShareKeeper]
) -> None:
    tree.job("7"), tree.job("8")
    before = make()
    before.order(1, 6, [guest("7", 2000, 50), Share(NODE, "8", weight=200)])
    before.look()
    after = make()
    after.look()
    assert tree.shows("7") == ("1", "20000 100000")
    assert tree.shows("8") == ("100", "max 100000")


def test_a_guest_that_is_awaited_when_the_service_goes_is_bound_when_it_comes(
    tree: Tree, make: Callable[[], ShareKeeper], clock: Clock
) -> None:
    keeper = make()
    keeper.order(1, 6, [guest("7")])
    keeper.look()
    clock.now_s += 20
    keeper.look()
    tree.job("7")
    keeper.look()
    assert tree.shows("7") == ("1", "20000 100000")


def test_without_a_service_jobs_long_gone_are_forgotten(
    tree: Tree, make: Callable[[], ShareKeeper], clock: Clock
) -> None:
    keeper = make()
    keeper.order(1, 6, [guest("7")])
    keeper.look()
    clock.now_s += ABSENT_S + 10
    keeper.look()
    keeper.look()
    assert keeper.is_idle


def test_one_poisonous_job_stops_no_other(
    tree: Tree, make: Callable[[], ShareKeeper], caplog: pytest.LogCaptureFixture
) -> None:
    keeper = make()
    poisonous = tree.job("6") / "cpu.weight"
    poisonous.unlink()
    poisonous.mkdir()
    tree.job("7")
    keeper.order(
        1, 6, [guest("6"), guest("7"), Share(NODE, "../../etc"), Share("n2", "7", weight=1)]
    )
    keeper.look()
    found = {each.share.job: each for each in keeper.look()}
    assert tree.shows("7") == ("1", "100000 100000")
    assert found.keys() == {"6", "7"}
    assert found["7"].problem == ""
    assert found["6"].method == ""
    assert caplog.text.count("by cgroup-v2") == 1  # and not once more at each look


def test_old_orders_and_endless_ones_are_ignored(make: Callable[[], ShareKeeper]) -> None:
    keeper = make()
    assert keeper.order(5, 6, [guest("7")])
    assert keeper.order(5, 6, [guest("7")])
    assert not keeper.order(4, 6, [])
    many = (guest(str(number)) for number in range(MAX_SHARES + 1))
    assert not keeper.order(6, 6, many)
    keeper.begin()
    assert keeper.order(1, 6, [])


def test_a_job_that_is_being_killed_has_no_quota_and_the_usual_weight(
    tree: Tree, make: Callable[[], ShareKeeper], proc: Path
) -> None:
    for pid, pending in ((41, "0000000000000100"), (42, "0000000000000000")):
        status = make_process(proc, pid) / "status"
        more = f"SigPnd:\t0000000000000000\nShdPnd:\t{pending}\n"
        status.write_text(status.read_text() + more)
    tree.job("7", 41), tree.job("8", 41, 42)
    keeper = make()
    keeper.order(1, 6, [guest("7"), guest("8")])
    keeper.look()
    assert tree.shows("7") == ("100", "max 100000")
    assert tree.shows("8") == ("1", "100000 100000")


def test_quotas_are_never_below_the_floor() -> None:
    assert bounded(guest("7", 1, 0), 4).milli_cpus == 200
    assert bounded(guest("7", 1, 0), 4).weight == 1
    assert bounded(guest("7", 5000, 20_000), 4) == guest("7", 0, 10_000)
    assert bounded(guest("7", -5), 4).milli_cpus == 0


def test_what_may_be_the_name_of_a_job() -> None:
    assert is_job("123")
    assert not any(map(is_job, ("", "12_3", "../1", "1" * 11, "¹²")))


# ---------------------------------------------------------------- record, guardian, thread


def test_the_record_is_roots_and_survives_nonsense(tmp_path: Path) -> None:
    record = ShareRecord(tmp_path / "shares.json")
    share = guest("7")
    record.put(Recorded((share,), ((share.key, "cgroup-v1"),), {share.key: Path("/a")}))
    assert record.path.stat().st_mode & 0o777 == 0o600
    assert ShareRecord(record.path).read().shares == (share,)
    assert ShareRecord(record.path).read().own == {(NODE, "7"): Path("/a")}
    for text in ("", "{", "[]", '{"shares": 5, "own": [[1, 2, 3]]}', '{"shares": [{"job": 7}, 5]}'):
        record.path.write_text(text)
        found = ShareRecord(record.path).read()
        assert (found.shares, dict(found.own)) == ((), {})


def test_one_process_keeps_the_shares(tmp_path: Path) -> None:
    first, second = (ShareRecord(tmp_path / "shares.json") for _ in range(2))
    assert first.take()
    assert first.take()
    assert not second.take()
    first.give()
    assert second.take()


def test_the_guardian_waits_for_the_lock_of_a_dying_agent(
    tree: Tree, make: Callable[[], ShareKeeper], tmp_path: Path
) -> None:
    tree.job("7")
    before = make()
    before.order(1, 6, [guest("7", 2000, 50)])
    before.look()
    dying, record = ShareRecord(tmp_path / "shares.json"), ShareRecord(tmp_path / "shares.json")
    assert dying.take()
    keeper, pauses = make(), list[float]()

    class Sleep:
        """The agent dies in the first pause, and the job ends in the third."""

        def __call__(self, pause_s: float) -> None:
            pauses.append(pause_s)
            if len(pauses) == 1:
                dying.give()
            if len(pauses) == 3:
                assert tree.shows("7") == ("1", "20000 100000")
                shutil.rmtree(tree.scope / "job_7")
                keeper.order(1, 0, [])

    take_over(record, keeper, sleep=Sleep())
    assert len(pauses) > 3
    # Where another one keeps the shares, it leaves them alone.
    tree.job("8")
    assert dying.take()
    keeper.order(2, 8, [guest("8")])
    take_over(record, keeper, sleep=pauses.append)
    assert tree.shows("8") == ("100", "max 100000")


def test_when_the_agent_is_killed_the_guardian_lets_guests_fall_back(
    tree: Tree, tmp_path: Path
) -> None:
    tree.job("7", os.getpid())
    host = tree.job("8", os.getppid())
    record = tmp_path / "shares.json"
    words = f"""
import time
from pathlib import Path
from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.running import Share, ShareThread
root = Path({str(tree.root)!r})
shares = ShareThread(["n1"], Path({str(record)!r}), Processes(), cpus=4, root=root)
ordered = [Share("n1", "7", True, 2000, 50), Share("n1", "8", False, 3000)]
shares.start()
while True:
    shares.order(1, 8, ordered)
    time.sleep(0.5)
"""
    agent = subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE)
    try:
        wait_until(lambda: tree.shows("7") == ("50", "200000 100000"))
        assert json.loads(record.read_text())["changed"]
    finally:
        agent.kill()
        agent.wait()
    wait_until(lambda: tree.shows("7") == ("1", "20000 100000"))
    wait_until(lambda: tree.shows("8") == ("100", "max 100000"))
    ends(host)
    wait_until(lambda: tree.shows("7") == ("1", "max 100000"))
    # The next agent takes over from the guardian, and its service decides again.
    after = ShareThread([NODE], record, Processes(), cpus=4, root=tree.root)
    after.start()
    try:
        after.order(1, 8, [])
        wait_until(lambda: tree.shows("7") == ("100", "max 100000"))
    finally:
        after.stop()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"shares": [{"node": ["n1"], "job": "7"}, {"node": "n1", "job": 7}]}'],
    ids=["deep", "types"],
)
def test_a_record_that_says_odd_things_is_left_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shares.json"
    path.write_text(text)
    assert ShareRecord(path).read() == Recorded()
