# SPDX-License-Identifier: Apache-2.0
"""Hosts of several vnodes: a job's nodes are vnodes, alone per vnode (excl) or host (exclhost)."""

import pytest

from bridge.pbs.decisions.reservations import answer
from bridge.pbs.orders import Refusal, StartOrder
from schedbridge_contracts.crosses import each
from tests.pbs_tables import NOW_S, a_job, a_vnode, running, some_tables
from tests.unit.pbs.model.test_translation import Service

HOST = {
    "h": a_vnode("h", 0, "0kb"), "h[0]": a_vnode("h", 2, "4gb"), "h[1]": a_vnode("h", 2, "4gb"),
}  # fmt: skip
MIXED = {**HOST, "n1": a_vnode("n1", 2, "4gb")}


def cycle(jobs, vnodes=HOST, preset="pbs"):
    return Service(some_tables(jobs, dict(vnodes)), preset).cycle()


RUNS = {
    "one vnode": ("1:ncpus=2", "free", "(h[0]:ncpus=2)"),
    "vscatter": ("2:ncpus=1", "vscatter", "(h[0]:ncpus=1)+(h[1]:ncpus=1)"),
    "packed": ("4:ncpus=1", "pack",
               "(h[0]:ncpus=1)+(h[0]:ncpus=1)+(h[1]:ncpus=1)+(h[1]:ncpus=1)"),
    "wider than a vnode": ("1:ncpus=3", "free", "(h[0]:ncpus=2+h[1]:ncpus=1)"),
    "alone on a vnode": ("1:ncpus=1", "excl", "(h[0]:ncpus=1)"),
    "two chunks alone": ("2:ncpus=1", "excl", "(h[0]:ncpus=1)+(h[0]:ncpus=1)"),
    "alone on the host": ("1:ncpus=1", "exclhost", "(h[0]:ncpus=1)+(h)+(h[1])"),
}  # fmt: skip


@each(kind=[*RUNS], preset=["pbs", "slurm-like", "openccs"])
def test_runs(kind, preset):
    select, place, exec_vnode = RUNS[kind]
    found = cycle({"1.srv": a_job(select, place)}, preset=preset)
    assert found == {"1.srv": StartOrder("1.srv", exec_vnode)}


@pytest.mark.parametrize(
    ("select", "place"),
    [("3:ncpus=1", "vscatter"), ("2:ncpus=1", "scatter"), ("3:ncpus=1", "vscatter:excl")],
)
def test_too_wide_for_the_host(select, place):
    shown = cycle({"1.srv": a_job(select, place)})["1.srv"]
    assert shown["comment"].startswith("Not Running: ")
    assert "estimated" not in shown


def test_excl_leaves_the_sibling_vnode_to_others():
    alone = running("(h[0]:ncpus=1)", place="excl")
    found = cycle({"1.srv": alone, "2.srv": a_job("1:ncpus=2"), "3.srv": a_job("1:ncpus=1")})
    assert found["2.srv"] == StartOrder("2.srv", "(h[1]:ncpus=2)")
    assert "estimated" in found["3.srv"]


def test_excl_waits_for_a_vnode_of_its_own():
    jobs = {
        "1.srv": running("(h[0]:ncpus=2)"),
        "2.srv": running("(h[1]:ncpus=1)"),
        "3.srv": a_job("1:ncpus=1", "excl"),
    }
    assert cycle(jobs)["3.srv"]["estimated"]["start_time"] == str(NOW_S + 590)


def test_exclhost_keeps_the_whole_host():
    held = running("(h[0]:ncpus=1)+(h)+(h[1])", place="exclhost")
    assert "estimated" in cycle({"1.srv": held, "2.srv": a_job("1:ncpus=1")})["2.srv"]


def test_exclhost_keeps_vnodes_that_differ():
    vnodes = {"h[0]": a_vnode("h", 2), "h[1]": a_vnode("h", 2, color="red")}
    held = running("(h[0]:ncpus=1)", place="exclhost")
    found = cycle({"1.srv": held, "2.srv": a_job("1:ncpus=1:color=red")}, vnodes)
    assert "estimated" in found["2.srv"]


def test_beside_hosts_of_one_vnode_excl_plans_whole_nodes():
    jobs = {"1.srv": running("(n1:ncpus=2)"), "2.srv": a_job("1:ncpus=1", "excl"),
            "3.srv": a_job("1:ncpus=2", "vscatter")}  # fmt: skip
    service = Service(some_tables(jobs, MIXED), "pbs")
    assert service.cycle()["2.srv"] == StartOrder("2.srv", "(h[0]:ncpus=1)")
    assert service.cycle()["3.srv"] == StartOrder("3.srv", "(h[1]:ncpus=2)")


def test_a_reservation_of_a_host_alone_names_all_its_vnodes():
    requested = {
        "reserve_state": "1", "reserve_start": str(NOW_S + 60), "reserve_end": str(NOW_S + 660),
        "schedselect": "1:ncpus=1", "queue": "R1",
        "Resource_List": {"select": "1:ncpus=1", "place": "exclhost"},
    }  # fmt: skip
    tables = some_tables({}, HOST, reservations={"R1.srv": requested})
    assert answer(tables, "R1.srv").location == "(h[0]:ncpus=1)+(h)+(h[1])"


def test_what_cannot_start_now_is_not_tried_for_ever():
    jobs = {
        "1.srv": running("(h[0]:ncpus=1)"),
        "2.srv": running("(h[1]:ncpus=1)"),
        "3.srv": a_job("2:ncpus=1", "vscatter:excl"),
    }
    service = Service(some_tables(jobs, HOST), "pbs")
    assert not any(isinstance(service.cycle()["3.srv"], StartOrder) for _ in range(2))
    assert isinstance(service.cycle().get("3.srv"), dict | Refusal | None)
