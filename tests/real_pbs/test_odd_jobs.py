# SPDX-License-Identifier: Apache-2.0
"""Odd jobs, reservations, vnodes and changes at the worst moment: none of them stops the others."""

import contextlib
import ctypes
import random
import threading
import time

import pytest

from bridge.pbs.ifl.library import Library, find_library
from bridge.pbs.ifl.structures import AttributeList
from tests.real_pbs.server import wait_for

ONE = {"select": "1:ncpus=1"}
ODD = {
    "quotes in the name": {"Job_Name": "a\"b'c`$(x)"},
    "line break in the name": {"Job_Name": "x\ny = z"},
    "another script in the name": {"Job_Name": "名前\u202e"},
    "long name": {"Job_Name": "x" * 230},
    "odd variables": {"Variable_List": "A=\"x\ny\",B='{[,C=\u00e9"},
    "odd account": {"Account_Name": "a,b:c=d [u:x=1]\n"},
    "odd project": {"project": "p]q,[u:alice=0"},
    "odd string": {"Resource_List": {"select": "1:ncpus=1:color='a+b:c=d'"}},
    "no CPUs, many chunks": {"Resource_List": {"select": "2000:ncpus=0"}},
    "many kinds": {"Resource_List": {"select": "+".join(["1:ncpus=1:mem=1kb"] * 1500)}},
    "too many chunks": {"Resource_List": {"select": "99999999:ncpus=1"}},
    "zero chunks": {"Resource_List": {"select": "0:ncpus=1"}},
    "too much memory": {"Resource_List": {"select": "1:mem=99999999tb"}},
    "unknown resource": {"Resource_List": {"select": "1:ncpus=1:nothing=3"}},
    "unknown group": {"Resource_List": {**ONE, "place": "scatter:excl:group=nothing"}},
    "odd place": {"Resource_List": {**ONE, "place": "pack:pack"}},
    "endless": {"Resource_List": {**ONE, "walltime": "999999999"}},
    "no time": {"Resource_List": {**ONE, "walltime": "0"}},
    "crossed times": {"Resource_List": {**ONE, "min_walltime": "20", "max_walltime": "10"}},
    "depends on nobody": {"depend": "afterok:99999.pbssrv"},
    "begins in 2106": {"Execution_Time": "4294967295"},
    "extreme priority": {"Priority": "1023"},
    "old syntax": {"Resource_List": {"nodes": "2:ppn=2+1:color"}},
    "large array": {"array_indices_submitted": "0-9999", "max_run_subjobs": "5000"},
}  # fmt: skip


class Submitter:
    """Submits attributes as they are, without the checks of qsub."""

    def __init__(self, folder):
        self.library = Library(find_library())
        self.connection = self.library.connect("")
        self.call = self.library.function("pbs_submit", ctypes.c_char_p)
        self.script = folder / "script"
        self.script.write_text("#!/bin/sh\nsleep 3600\n")

    def submit(self, **attributes):
        """Returns the id; None: the server refuses."""
        requested = {
            "Resource_List": ONE, "Mail_Points": "n", "Output_Path": "/dev/null",
            "Error_Path": "/dev/null", **attributes,
        }  # fmt: skip
        listed = AttributeList.set_to(requested)
        found = self.call(self.connection, listed.head, str(self.script).encode(), None, None)
        return found.decode() if found else None


@pytest.fixture(scope="module", autouse=True)
def plain_queue(server):
    """The plain jobs have a vnode of their own, so that they never wait for odd ones."""
    server.qmgr(
        "set server acl_roots = root", "create resource color type=string,flag=h",
        "create queue plain queue_type=e,enabled=t,started=t", "set node n4 queue=plain",
    )  # fmt: skip


@pytest.fixture(scope="module")
def submitter(server, tmp_path_factory):
    return Submitter(tmp_path_factory.mktemp("scripts"))


def runs_soon(server, bridge, *words, limit_s=30):
    """A plain job runs, on the same registration and link as before."""
    before = bridge.registrations(), bridge.link_pid()
    job = server.qsub("-q", "plain", "-l", "select=1:ncpus=1", *words)
    server.wait_state(job, "R", limit_s=limit_s)
    assert (bridge.registrations(), bridge.link_pid()) == before
    server.run("qdel", "-Wforce", job, check=False)
    return job


def test_whatever_a_job_states_others_run(server, bridge, submitter):
    accepted = []
    for kind, attributes in ODD.items():
        job = submitter.submit(**attributes)
        print(kind, job)
        if job is None:
            continue
        accepted.append(job)
        runs_soon(server, bridge)
        server.run("qdel", "-Wforce", job, check=False)
    assert len(accepted) > len(ODD) / 2
    ids = [submitter.submit(**attributes) for attributes in ODD.values()]  # all at once
    runs_soon(server, bridge)
    assert "PBS" in bridge.ask("status")
    assert bridge.ask("plan")
    assert bridge.ask("explain", next(job for job in ids if job))
    server.delete_all()
    assert "Traceback" not in bridge.log.read_text() + bridge.service_log.read_text()


RESERVATIONS = {
    "many chunks": ("-l", "select=20000:ncpus=0"),
    "many kinds": ("-l", "select=" + "+".join(["1:ncpus=1:mem=1kb"] * 800)),
    "a day that is not": (
        "-l", "select=1:ncpus=1", "-r", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2",
    ),
    "every hour": ("-l", "select=1:ncpus=1", "-r", "FREQ=HOURLY;COUNT=900"),
    "until": ("-l", "select=1:ncpus=1", "-r", "FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20401231"),
    "by position": ("-l", "select=1:ncpus=1", "-r", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1;COUNT=3"),
    "odd name": ("-l", "select=1:ncpus=1", "-N", "a'b"),
    "unknown vnode": ("-l", "select=1:vnode=n99"),
    "odd group": ("-l", "select=2:ncpus=1", "-l", "place=scatter:group=color"),
}  # fmt: skip


def test_whatever_a_reservation_asks_for_others_run(server, bridge):
    names = []
    for number, (kind, words) in enumerate(RESERVATIONS.items()):
        begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 3600 + 700 * number))
        told = server.run("env", f"PBS_TZID={'Nowhere' if number == 7 else 'Europe/Berlin'}",
                          "pbs_rsub", "-R", begin, "-D", "300", *words, user="alice",
                          check=False, limit_s=60)  # fmt: skip
        print(kind, told)
        names += [word for word in told.split() if word[:1] in "RS" and ".pbssrv" in word][:1]
        runs_soon(server, bridge, "-l", "walltime=00:01:00")
    assert names
    for name in names:
        wait_for(
            f"an answer for {name}",
            lambda name=name: "UNCONFIRMED" not in server.run("pbs_rstat", "-F", name, check=False),
        )
        server.run("pbs_rdel", name, check=False)
    runs_soon(server, bridge)


def test_a_vnode_with_an_odd_name_takes_jobs_or_is_left_alone(server, bridge):
    log = bridge.log.read_text()
    for name in ("odd@1/x^y", "odd#2"):
        server.run("qmgr", "-c", f"create node {name} Mom=n1,Port=17010", check=False)
        server.run("qmgr", "-c", f"set node {name} resources_available.ncpus=1", check=False)
    print(server.nodes().keys())
    try:
        runs_soon(server, bridge)
        if "odd@1/x^y" in server.nodes():
            job = server.qsub("-l", "select=1:ncpus=1:vnode=odd@1/x^y")
            with contextlib.suppress(TimeoutError):
                server.wait_state(job, "R", limit_s=15)
            print(server.jobs(job)[job].get("exec_vnode"), server.jobs(job)[job].get("comment"))
        runs_soon(server, bridge)
        print(bridge.log.read_text()[len(log) :])
    finally:
        server.delete_all()
        for name in ("odd@1/x^y", "odd#2"):
            server.run("qmgr", "-c", f"delete node {name}", check=False)


def test_hundreds_of_held_and_dependent_jobs_do_not_delay_others(server, bridge):
    first = server.qsub("-h", "-l", "select=1:ncpus=1")
    chain = first
    for _ in range(60):
        chain = server.qsub("-W", f"depend=afterok:{chain}", "-l", "select=1:ncpus=1")
    for _ in range(60):
        server.qsub("-h", "-l", "select=1:ncpus=1")
    runs_soon(server, bridge, limit_s=10)
    server.qmgr("set queue workq enabled=False")
    try:
        server.run("qrls", first)
        server.wait_state(first, "R")
    finally:
        server.qmgr("set queue workq enabled=True")
    server.delete_all()


def _disturb(server, jobs, rng, until):
    """What users and administrators do, without waiting for anything."""
    while time.monotonic() < until:
        job = rng.choice(jobs)
        server.run(
            *rng.choice((
                ("qdel", job), ("qdel", "-Wforce", job), ("qrerun", job), ("qmove", "q2", job),
                ("qmove", "workq", job), ("qalter", "-l", "select=1:ncpus=2", job),
                ("qalter", "-p", str(rng.randrange(-100, 100)), job), ("qhold", job),
                ("qrls", job), ("qrun", job), ("qsig", "-s", "suspend", job),
                ("qsig", "-s", "resume", job),
                ("qmgr", "-c", f"set node n{rng.randrange(1, 4)} state=offline"),
                ("qmgr", "-c", f"set node n{rng.randrange(1, 4)} state-=offline"),
                ("qmgr", "-c", "set queue workq started=False"),
                ("qmgr", "-c", "set queue workq started=True"),
            )),
            check=False, limit_s=120,
        )  # fmt: skip


def test_changes_at_the_moment_of_a_start_overfill_no_vnode(server, bridge):
    server.qmgr("create queue q2 queue_type=e,enabled=t,started=t")
    rng, until = random.Random(1), time.monotonic() + 40
    jobs = [server.qsub("-l", f"select=1:ncpus={rng.randrange(1, 5)}") for _ in range(10)]
    threads = [
        threading.Thread(target=_disturb, args=(server, jobs, random.Random(seed), until))
        for seed in range(3)
    ]
    for thread in threads:
        thread.start()
    overfilled = []
    while time.monotonic() < until:
        with contextlib.suppress(RuntimeError):
            jobs.append(server.qsub("-l", f"select=1:ncpus={rng.randrange(1, 5)}", "-q",
                                    rng.choice(("workq", "q2")), script="sleep 1"))  # fmt: skip
        for name, node in server.nodes().items():
            used = int(node.get("resources_assigned", {}).get("ncpus", 0))
            if used > int(node["resources_available"]["ncpus"]):
                overfilled.append((name, used, node.get("jobs")))
    for thread in threads:
        thread.join()
    assert not overfilled
    server.qmgr("set queue workq started=True",
                *(f"set node n{n} state-=offline" for n in range(1, 4)))  # fmt: skip
    server.delete_all()
    runs_soon(server, bridge)
    assert "Traceback" not in bridge.log.read_text() + bridge.service_log.read_text()
