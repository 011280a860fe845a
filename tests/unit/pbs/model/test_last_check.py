# SPDX-License-Identifier: Apache-2.0
"""The last check admits nothing that the server should not run."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.orders import Refusal, StartOrder
from bridge.pbs.report.translation import Translation
from bridge.rpc.pb import scheduler_pb2 as pb
from schedbridge_contracts.crosses import each
from tests.pbs_tables import NOW_S, a_job, a_queue, a_vnode, running, some_tables, violations


def ask(check, job_id, nodes, uses=(), **start):
    job = check.parsed.jobs.get(job_id)
    return check.admit(
        pb.Decision(
            job_id=job_id,
            job_version=job.version if job else 1,
            start=pb.Start(
                nodes=nodes, partition="workq", uses=[pb.NodeUse(nodes=n, cpus=c) for n, c in uses],
                **start,
            ),
        )
    )  # fmt: skip


def test_chunks_are_written_in_the_order_of_the_select():
    job = a_job("1:ncpus=1:mem=100mb+2:ncpus=3:mem=1gb", "free")
    run = ask(LastCheck(some_tables({"1.srv": job})), "1.srv", "n[1-2]", [("n1", 4), ("n2", 3)])
    assert run == StartOrder(
        "1.srv", "(n1:ncpus=1:mem=102400kb)+(n2:ncpus=3:mem=1048576kb)+(n1:ncpus=3:mem=1048576kb)"
    )


def test_a_chunk_may_use_several_vnodes_of_one_host():
    vnodes = {f"n4[{at}]": a_vnode("n4", 2) for at in range(3)}
    tables = some_tables(
        {"1.srv": a_job("1:ncpus=5"), "2.srv": a_job("1:ncpus=3", "vscatter")}, vnodes
    )
    run = ask(LastCheck(tables), "1.srv", "n4")
    assert run.exec_vnode == "(n4[0]:ncpus=2+n4[1]:ncpus=2+n4[2]:ncpus=1)"
    assert ask(LastCheck(tables), "2.srv", "n4").result == pb.OUTCOME_BUSY


def test_what_is_admitted_is_booked_until_it_is_withdrawn():
    jobs = {"1.srv": a_job("1:ncpus=3"), "2.srv": a_job("1:ncpus=3")}
    check = LastCheck(some_tables(jobs))
    run = ask(check, "1.srv", "n1")
    assert ask(check, "2.srv", "n1").result == pb.OUTCOME_BUSY
    assert ask(check, "1.srv", "n2").result == pb.OUTCOME_STALE
    check.withdraw(run)
    assert ask(check, "2.srv", "n1") == StartOrder("2.srv", "(n1:ncpus=3)")


def test_each_task_of_an_array_runs_once():
    array = a_job("1:ncpus=1", state="B", array_indices_remaining="3-7:2,9", max_run_subjobs="3")
    check = LastCheck(some_tables({"5[].srv": array}))
    runs = [ask(check, "5[].srv", "n1") for _ in range(3)]
    assert [run.job_id for run in runs] == ["5[3].srv", "5[5].srv", "5[7].srv"]
    refused = ask(check, "5[].srv", "n1")
    assert (refused.result, refused.text) == (
        pb.OUTCOME_LIMITED, "3 tasks of the array run, its max_run_subjobs is 3",
    )  # fmt: skip
    check.withdraw(runs[1])
    assert ask(check, "5[].srv", "n1").job_id == "5[5].srv"


REFUSED = {
    "held": ({"Hold_Types": "u"}, {}, "the job has a hold of type u"),
    "dependency": (
        {"Hold_Types": "s", "depend": "afterok:1.srv@srv"}, {},
        "the job waits for afterok:1.srv@srv",
    ),
    "later": ({"Execution_Time": str(NOW_S + 5)}, {}, "the time requested with -a has not come"),
    "running": ({"job_state": "R"}, {}, "the job is in state R"),
    "no queue": ({"queue": "gone"}, {}, "there is no queue gone"),
    "queue stopped": (
        {}, {"queues": {"workq": a_queue(started="False")}}, "queue workq is not started",
    ),
    "queue routes": (
        {}, {"queues": {"workq": a_queue(queue_type="Route")}}, "queue workq only routes jobs",
    ),
    "queue of another scheduler": (
        {}, {"queues": {"workq": a_queue(partition="P1")}},
        "queue workq is in the partition of another scheduler",
    ),
    "limit of all": (
        {}, {"server": {"max_run": "[o:PBS_ALL=1]"}},
        "limit of the server for all jobs: 1 of at most 1 jobs run",
    ),
    "limit of each user": (
        {}, {"server": {"max_run": "[u:PBS_GENERIC=1],[u:bob=9]"}},
        "limit of the server for user ann: 1 of at most 1 jobs run",
    ),
    "limit of a queue": (
        {}, {"queues": {"workq": a_queue(max_run_res={"ncpus": "[u:ann=2]"})}},
        "limit of queue workq for user ann: 2 of at most 2 ncpus in use",
    ),
    "older limit": (
        {}, {"queues": {"workq": a_queue(max_running="1")}},
        "limit of queue workq for all jobs: 1 of at most 1 jobs run",
    ),
    "resources of the server": (
        {"listed": {"lic": "2"}}, {"server": {"resources_available": {"lic": "1"}}},
        "limit of the server for all jobs: 0 of at most 1 lic in use",
    ),
    "string of the server": (
        {"listed": {"site": "b"}}, {"server": {"resources_available": {"site": "a"}}},
        "the server has site=a, not b",
    ),
    "boolean of a queue": (
        {"listed": {"open": "t"}},
        {"queues": {"workq": a_queue(resources_available={"open": "False"})}},
        "queue workq has open=False, not True",
    ),
    "vnode of another scheduler": (
        {}, {"vnodes": {"n1": a_vnode("n1") | {"partition": "P1"}, "n2": a_vnode("n2")}},
        "vnode n1 takes no jobs of this scheduler",
    ),
    "vnode offline": (
        {}, {"vnodes": {"n1": a_vnode("n1", state="offline"), "n2": a_vnode("n2")}},
        "vnode n1 is offline",
    ),
    "vnode of a queue": (
        {}, {"vnodes": {"n1": a_vnode("n1", queue="other"), "n2": a_vnode("n2")}},
        "vnode n1 belongs to queue other",
    ),
    "vnode alone": (
        {}, {"vnodes": {"n1": a_vnode("n1", state="job-exclusive"), "n2": a_vnode("n2")}},
        "vnode n1 is in state job-exclusive",
    ),
    "too large": ({"schedselect": "1:ncpus=9"}, {}, "its chunks do not fit on these vnodes now"),
    "too much memory": (
        {"schedselect": "1:ncpus=1:mem=9gb"}, {}, "its chunks do not fit on these vnodes now",
    ),
    "no such string": (
        {"schedselect": "1:ncpus=1:color=red"}, {}, "its chunks do not fit on these vnodes now",
    ),
    "unknown resource": (
        {"schedselect": "1:ncpus=1:foo=1"}, {}, "asks for foo, which this server does not define",
    ),
    "not a select": ({"schedselect": "1:ncpus"}, {}, "select: 'ncpus' is not RESOURCE=VALUE"),
    "provisioning": (
        {"schedselect": "1:ncpus=1:aoe=rhel"},
        {"resources": {"aoe": {"type": "string_array", "flag": "h"}}},
        "asks for an operating environment: nodes are not provisioned here",
    ),
}  # fmt: skip


@each(case=[*REFUSED])
def test_refused_with_one_message(case):
    changed, settings, why = REFUSED[case]
    jobs = {"1.srv": a_job(**changed), "9.srv": running("(n2:ncpus=2)", select="1:ncpus=2")}
    refused = ask(LastCheck(some_tables(jobs, **settings)), "1.srv", "n1")
    assert isinstance(refused, Refusal), refused
    assert refused.text == why


@pytest.mark.parametrize(
    ("listed", "pools"),
    [
        ({"site": "a"}, {"site": "a"}),
        ({"site": "z"}, {}),
        ({"open": "true"}, {"open": "1"}),
        ({"apps": "y"}, {"apps": "x,y"}),
    ],
)
def test_what_server_and_queue_have_or_do_not_state_is_no_obstacle(listed, pools):
    tables = some_tables({"1.srv": a_job(listed=listed)}, server={"resources_available": pools})
    assert isinstance(ask(LastCheck(tables), "1.srv", "n1"), StartOrder)
    assert Translation().report(tables).jobs["1.srv"].hold == pb.HOLD_NONE


def test_a_vnode_whose_name_is_a_delimiter_is_closed_and_named():
    vnodes = {"n#1": a_vnode("n1"), "n@2/a": a_vnode("n2")}
    tables = some_tables({"1.srv": a_job()}, vnodes)
    report = Translation().report(tables)
    assert {name: node.usable for name, node in report.nodes.items()} == {
        "n_1": False, "n_2_a": True,
    }  # fmt: skip
    assert "vnode n#1: no job is started there, because of its name" in report.not_modelled
    assert ask(LastCheck(tables), "1.srv", "n_2_a").exec_vnode == "(n@2/a:ncpus=1)"


def test_a_resource_that_is_no_longer_defined_leaves_a_running_job_on_its_vnodes():
    jobs = {"1.srv": a_job("1:ncpus=1"), "9.srv": running("(n1:ncpus=4:gone=3gb)")}
    check = LastCheck(some_tables(jobs))
    assert ask(check, "1.srv", "n1").result == pb.OUTCOME_BUSY
    assert isinstance(ask(check, "1.srv", "n2"), StartOrder)


def test_each_chunk_goes_where_it_leaves_the_fewest_cpus():
    free = {"n1": 4, "n2": 3, "n3": 4, "n4": 2}
    vnodes = {name: a_vnode(name, cpus) for name, cpus in free.items()}
    for place, expected in (("free", "n4+n2+n1"), ("scatter", "n4+n2+n1"), ("pack", "")):
        check = LastCheck(some_tables({"1.srv": a_job("3:ncpus=2", place)}, vnodes))
        found = ask(check, "1.srv", "n[1-4]")
        where = "" if isinstance(found, Refusal) else found.exec_vnode
        assert where.replace(":ncpus=2", "").replace("(", "").replace(")", "") == expected


def test_an_exclusive_job_wants_vnodes_alone_and_has_them_alone():
    jobs = {
        "1.srv": a_job(place="excl"), "2.srv": a_job(place="exclhost"), "3.srv": a_job(),
        "9.srv": running("(n1:ncpus=1)"),
    }  # fmt: skip
    check = LastCheck(some_tables(jobs))
    assert ask(check, "1.srv", "n1").text == (
        "vnode n1 is used by job 9.srv, and the job wants it alone"
    )
    assert isinstance(ask(check, "2.srv", "n2"), StartOrder)
    assert ask(check, "3.srv", "n2").text == "vnode n2 is used alone by job 2.srv"


def test_jobs_of_a_reservation_have_its_amounts_and_others_the_rest():
    reservation = {
        "reserve_state": "5", "reserve_start": str(NOW_S - 60), "reserve_end": str(NOW_S + 600),
        "resv_nodes": "(n1:ncpus=3)", "queue": "R7", "Resource_List": {"place": "free"},
    }  # fmt: skip
    jobs = {
        "1.srv": a_job("1:ncpus=2"), "2.srv": a_job("1:ncpus=1"),
        "3.srv": a_job("1:ncpus=2", queue="R7"), "4.srv": a_job("1:ncpus=2", queue="R7"),
    }  # fmt: skip
    check = LastCheck(
        some_tables(jobs, reservations={"R7.srv": reservation},
                    queues={"workq": a_queue(), "R7": a_queue()})
    )  # fmt: skip

    def inside(job_id):
        version = check.parsed.jobs[job_id].version
        start = pb.Start(nodes="n1", partition="R7")
        return check.admit(pb.Decision(job_id=job_id, job_version=version, start=start))

    assert ask(check, "1.srv", "n1").result == pb.OUTCOME_BUSY
    assert isinstance(ask(check, "2.srv", "n1"), StartOrder)
    assert isinstance(inside("3.srv"), StartOrder)
    assert inside("4.srv").result == pb.OUTCOME_BUSY


def test_a_job_that_an_operator_runs_needs_free_vnodes_only():
    tables = some_tables(
        {
            "1.srv": a_job(Hold_Types="n", Execution_Time=str(NOW_S + 9)),
            "2.srv": a_job("1:ncpus=9"),
        },
        server={"max_run": "[o:PBS_ALL=0]"},
    )
    check = LastCheck(tables)
    assert check.run_now("1.srv") == StartOrder("1.srv", "(n1:ncpus=1)")
    assert check.run_now("2.srv").result == pb.OUTCOME_BUSY
    assert check.run_now("8.srv").result == pb.OUTCOME_STALE


def test_a_suspended_job_resumes_where_it_was_if_there_is_room():
    suspended = running("(n1:ncpus=3:mem=1024kb)", select="1:ncpus=3:mem=1mb")
    suspended |= {"job_state": "S", "resources_released": "(n1:ncpus=3)"}
    tables = some_tables({"1.srv": suspended, "2.srv": a_job("1:ncpus=2")})
    assert LastCheck(tables).resume("1.srv") is None
    check = LastCheck(tables)
    assert isinstance(ask(check, "2.srv", "n1"), StartOrder)
    assert check.resume("1.srv").text == "vnode n1 has too little ncpus free"


def test_a_shorter_time_only_for_jobs_that_allow_it():
    jobs = {"1.srv": a_job(listed={"min_walltime": "60", "max_walltime": "600"}), "2.srv": a_job()}
    check = LastCheck(some_tables(jobs))
    assert ask(check, "1.srv", "n1", time_limit_s=30).result == pb.OUTCOME_INVALID
    assert ask(check, "1.srv", "n1", time_limit_s=300).walltime_s == 300
    assert ask(check, "2.srv", "n1", time_limit_s=30).result == pb.OUTCOME_INVALID


SELECTS = st.lists(
    st.tuples(
        st.integers(1, 3), st.integers(0, 5), st.sampled_from(["", "mem=3gb", "scratch=1gb"]),
        st.sampled_from(["", "color=red", "big=true", "big=false", "host=n1", "vnode=n4[1]"]),
    ),
    min_size=1, max_size=3,
)  # fmt: skip
PLACES = st.sampled_from(
    ["free", "pack", "scatter", "vscatter", "free:excl", "scatter:exclhost", "pack:shared",
     "free:group=rack"],
)  # fmt: skip
VNODES = {
    "n1": a_vnode("n1", 4, scratch="2gb"),
    "n2": a_vnode("n2", 6, color="red", rack="a,b"),
    "n3": a_vnode("n3", 4, big="True", rack="b", sharing="default_excl"),
    "n4[0]": a_vnode("n4", 2, rack="a"),
    "n4[1]": a_vnode("n4", 2, rack="a"),
    "n4[2]": a_vnode("n4", 2, color="red", scratch="@n1"),
}


def select_text(groups):
    return "+".join(
        ":".join([str(count), f"ncpus={cpus}", *filter(None, words)])
        for count, cpus, *words in groups
    )


@given(
    jobs=st.lists(st.tuples(SELECTS, PLACES), min_size=1, max_size=8),
    targets=st.lists(st.sets(st.sampled_from(["n1", "n2", "n3", "n4", "n4.2"]), min_size=1)),
)
def test_nothing_is_overbooked_whatever_is_decided(jobs, targets):
    jobs = {
        f"{at}.srv": a_job(select_text(groups), place) for at, (groups, place) in enumerate(jobs)
    }
    tables = some_tables(jobs, VNODES)
    check = LastCheck(tables)
    now = dict(jobs)
    for at, nodes in enumerate(targets):
        job_id = f"{at % len(jobs)}.srv"
        answer = ask(check, job_id, ",".join(sorted(nodes)))
        if isinstance(answer, StartOrder):
            assert now[job_id]["job_state"] == "Q"
            now[job_id] = jobs[job_id] | {"job_state": "R", "exec_vnode": answer.exec_vnode}
            assert not violations(dataclasses.replace(tables, jobs=now))
