# SPDX-License-Identifier: Apache-2.0
"""A server's tables as messages, through the service, and back to the server."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.resources import Arrangement
from bridge.pbs.decisions.announcement import announcement
from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.orders import StartOrder
from bridge.pbs.report.ended import ended
from bridge.pbs.report.translation import HELLO_FIELDS, Translation
from bridge.planning.requests.chunks import format_place, format_request, parse_request
from bridge.registry import PRESETS, build
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from tests.pbs_tables import NOW_S, a_job, a_queue, a_vnode, running, some_tables, violations
from tests.unit.rpc import worlds


class Service:
    """The service, a server that runs whatever it is asked to, and the link between them."""

    def __init__(self, tables, preset="slurm-like", judge=violations):
        self.judge = judge
        self.tables, self.translation = tables, Translation()
        policy = build(PRESETS[preset])
        self.cycles = worlds.some_cycles(
            Decider(policy).decide, preset, hello=worlds.a_hello(
                features=["start", "planned_start", "pending_reason"], **HELLO_FIELDS)
        )  # fmt: skip
        self.generation, self.fates, self.replies = 0, [], []

    def cycle(self):
        """One cycle with a full report; starts are carried out."""
        report = self.translation.report(self.tables)
        self.generation += 1
        reply = self.cycles.run(
            pb.CycleRequest(
                epoch=1, generation=self.generation, now_s=self.tables.now_s,
                jobs=report.jobs.values(), nodes=report.nodes.values(),
                partitions=report.partitions, reservations=report.reservations,
                licences=report.licences, fates=self.fates,
            )
        )  # fmt: skip
        self.fates, jobs = [], dict(self.tables.jobs)
        check = LastCheck(self.tables, self.translation.reader)
        answers = {}
        for decision in reply.decisions:
            action = decision.WhichOneof("action")
            if action != "start":
                job_id, shown = announcement(decision, check.parsed.nodes)
                answers[job_id] = shown
                outcome = pb.OUTCOME_APPLIED
            else:
                answer = check.admit(decision)
                outcome = pb.OUTCOME_APPLIED if isinstance(answer, StartOrder) else answer.result
                if isinstance(answer, StartOrder):
                    answers[answer.job_id] = answer
                    before = jobs[decision.job_id]
                    jobs[answer.job_id] = before | {
                        "job_state": "R", "substate": "42", "exec_vnode": answer.exec_vnode,
                        "stime": str(self.tables.now_s),
                    }  # fmt: skip
                    if answer.job_id != decision.job_id:
                        jobs[answer.job_id] |= {"array_id": decision.job_id}
                        index = answer.job_id.partition("[")[2].partition("]")[0]
                        left = [
                            i for i in before["array_indices_remaining"].split(",") if i != index
                        ]
                        jobs[decision.job_id] = before | {
                            "job_state": "B", "array_indices_remaining": ",".join(left) or "-",
                        }  # fmt: skip
                else:
                    answers[decision.job_id] = answer
            self.fates.append(
                pb.Fate(decision_id=decision.id, job_id=decision.job_id, outcome=outcome)
            )
        self.tables = dataclasses.replace(self.tables, jobs=jobs)
        assert not self.judge(self.tables)
        return answers


RUNS = {
    "one chunk": (a_job("1:ncpus=3:mem=1gb"), "(n1:ncpus=3:mem=1048576kb)"),
    "spread": (a_job("2:ncpus=1", "scatter"), "(n1:ncpus=1)+(n2:ncpus=1)"),
    "packed": (a_job("2:ncpus=2", "pack"), "(n1:ncpus=2)+(n1:ncpus=2)"),
    "several kinds": (a_job("1:ncpus=4+2:ncpus=2"), "(n1:ncpus=4)+(n2:ncpus=2)+(n2:ncpus=2)"),
    "a host": (a_job("1:ncpus=1:host=n3"), "(n3:ncpus=1)"),
    "two hosts": (a_job("1:ncpus=1:host=n3+1:ncpus=1:vnode=n2"), "(n3:ncpus=1)+(n2:ncpus=1)"),
    "a string": (a_job("1:ncpus=1:color=red"), "(n4:ncpus=1)"),
    "a number as a string": (a_job("1:ncpus=1:color=7000000"), "(n3:ncpus=1)"),
    "a boolean": (a_job("1:ncpus=1:big=true"), "(n2:ncpus=1)"),
    "not a boolean": (a_job("3:ncpus=1:big=false", "scatter"),
                      "(n1:ncpus=1)+(n3:ncpus=1)+(n4:ncpus=1)"),
    "a size": (a_job("1:ncpus=1:scratch=3gb"), "(n3:ncpus=1:scratch=3145728kb)"),
    "no CPU": (a_job("1:ncpus=0:scratch=1gb"), "(n3:ncpus=0:scratch=1048576kb)"),
    "one rack": (a_job("2:ncpus=3", "scatter:group=rack"), "(n3:ncpus=3)+(n4:ncpus=3)"),
    "no rack is large enough": (
        a_job("3:ncpus=3", "scatter:group=rack"), "(n1:ncpus=3)+(n2:ncpus=3)+(n4:ncpus=3)",
    ),
    "grouped by host": (a_job("2:ncpus=2", "group=host"), "(n1:ncpus=2)+(n1:ncpus=2)"),
    "alone": (a_job("1:ncpus=1", "excl"), "(n1:ncpus=1)"),
    "shares": (a_job("1:ncpus=1", "free:shared"), "(n1:ncpus=1)"),
    "licences": (a_job("1:ncpus=1", listed={"lic": "2"}), "(n1:ncpus=1)"),
    "without select": (
        a_job("", schedselect="", Resource_List={"ncpus": "2", "mem": "1gb"}),
        "(n1:ncpus=2:mem=1048576kb)",
    ),
}  # fmt: skip


def world(jobs, **changed):
    vnodes = {
        "n1": a_vnode("n1", rack="r1"), "n2": a_vnode("n2", big="True"),
        "n3": a_vnode("n3", rack="r2", scratch="4gb", color="7000000"),
        "n4": a_vnode("n4", rack="r2", color="red"),
    }  # fmt: skip
    changed = {"server": {"resources_available": {"lic": "3"}}} | changed
    return some_tables(jobs, vnodes, **changed)


@each(kind=[*RUNS], preset=["slurm-like", "openccs"])
def test_runs(kind, preset):
    job, exec_vnode = RUNS[kind]
    answers = Service(world({"1.srv": job}), preset).cycle()
    assert answers == {"1.srv": StartOrder("1.srv", exec_vnode)}


WAITS = {
    "held": ({"Hold_Types": "u"}, {}, "hold of type u"),
    "stopped": ({}, {"queues": {"workq": a_queue(started="False")}}, "queue workq is not started"),
    "never": ({"schedselect": "1:ncpus=99"}, {}, "ncpus|CPUs|cpus|resources|hold"),
    "limit": ({}, {"server": {"max_run": "[u:ann=0]"}}, "limit of the server for user ann"),
    "unknown": ({"schedselect": "1:foo=1"}, {}, "asks for foo"),
    "no such color": ({"schedselect": "1:ncpus=1:color=blue"}, {}, "color=blue"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WAITS)
def test_waits_and_says_why(kind):
    changed, settings_, why = WAITS[kind]
    answers = Service(world({"1.srv": a_job(**changed)}, **settings_)).cycle()
    comment = answers["1.srv"]["comment"]
    assert comment.startswith("Not Running: ")
    assert any(word in comment for word in why.split("|")), comment


def test_a_vnode_that_takes_no_part_of_a_job_is_not_planned_for_it():
    tables = world({"1.srv": a_job("2:ncpus=3"), "2.srv": a_job("1:ncpus=1:vnode=n4")})
    tables.vnodes["n4"]["no_multinode_jobs"] = "True"
    answers = Service(tables).cycle()
    assert answers["1.srv"].exec_vnode == "(n1:ncpus=3)+(n2:ncpus=3)"
    assert answers["2.srv"].exec_vnode == "(n4:ncpus=1)"


def test_an_array_runs_task_by_task_within_its_limit():
    array = a_job("1:ncpus=1", state="Q", array_indices_remaining="1,2,3", max_run_subjobs="2")
    service = Service(world({"5[].srv": array}))
    assert set(service.cycle()) >= {"5[1].srv", "5[2].srv"}
    service.cycle()
    assert "5[3].srv" not in service.tables.jobs


def test_later_starts_are_announced_in_the_words_of_pbs():
    service = Service(world({"1.srv": running("(n1:ncpus=4)", select="1:ncpus=4"),
                             "2.srv": a_job("1:ncpus=4:host=n1")}))  # fmt: skip
    shown = service.cycle()["2.srv"]
    assert shown["estimated"]["start_time"] == str(NOW_S + 590)
    assert shown["estimated"]["exec_vnode"] == "(n1)"
    assert shown["comment"].startswith("Not Running: ")


def test_priorities_by_the_formula_of_the_server():
    jobs = {f"{at}.srv": a_job(f"1:ncpus={at}", listed={"ncpus": f"{at}"}) for at in (1, 2, 3)}
    report = Translation().report(world(jobs, server={"job_sort_formula": "ncpus * 10"}))
    order = sorted(report.jobs, key=lambda job: -report.jobs[job].priority)
    assert order == ["3.srv", "2.srv", "1.srv"]
    bad = Translation().report(world(jobs, server={"job_sort_formula": "__import__('os')"}))
    assert len({job.priority for job in bad.jobs.values()}) == 1
    assert sum("job_sort_formula" in line for line in bad.not_modelled) == 1


def test_what_did_not_change_is_the_same_object():
    tables = world({"1.srv": a_job(), "2.srv": running("(n1:ncpus=1)")})
    translation = Translation()
    before = translation.report(tables)
    after = translation.report(dataclasses.replace(tables, now_s=NOW_S + 1))
    assert all(before.jobs[job] is after.jobs[job] for job in before.jobs)
    assert all(before.nodes[node] is after.nodes[node] for node in before.nodes)
    assert before.partitions is after.partitions


def test_the_version_changes_with_the_request_and_not_with_time():
    job = a_job()
    versions = {
        Translation().report(world({"1.srv": job | changed})).jobs["1.srv"].version
        for changed in ({}, {"eligible_time": "5"}, {"accrue_type": "2"})
    }
    assert len(versions) == 1
    other = Translation().report(world({"1.srv": job | {"Priority": "5"}})).jobs["1.srv"].version
    assert other not in versions


WORDS = st.sampled_from(
    ["", "0", "-1", "9" * 30, "True", "free", "(n1:ncpus=1)", "(n1", "[u:PBS_GENERIC=", "1:ncpus=x",
     "R", "Q", "B", "S", "1-9", "@n1", "@", "\u2603", "n\n1", "a" * 300, "1:host=n1", "2#(n1)[0]"]
)  # fmt: skip
ANY = st.one_of(
    WORDS, st.text(max_size=8), st.dictionaries(WORDS | st.just("ncpus"), WORDS, max_size=3)
)
JOB_KEYS = st.sampled_from(
    ["job_state", "queue", "schedselect", "Resource_List", "exec_vnode", "stime", "Hold_Types",
     "array_indices_remaining", "max_run_subjobs", "Execution_Time", "array_id",
     "resources_released"]
)  # fmt: skip
VNODE_KEYS = st.sampled_from(["state", "resources_available", "sharing", "queue", "Priority"])
QUEUE_KEYS = st.sampled_from(["queue_type", "started", "Priority", "max_run", "max_run_res"])
RESERVATION_KEYS = st.sampled_from(
    ["reserve_state", "reserve_start", "reserve_end", "resv_nodes", "queue", "Resource_List"]
)


def odd(keys):
    return st.dictionaries(keys, ANY, max_size=4)


@settings(max_examples=60)
@given(job=odd(JOB_KEYS), vnode=odd(VNODE_KEYS), queue=odd(QUEUE_KEYS), server=odd(QUEUE_KEYS),
       reservation=odd(RESERVATION_KEYS), name=WORDS)  # fmt: skip
def test_one_odd_thing_never_stops_the_rest(job, vnode, queue, server, reservation, name):
    tables = some_tables(
        {"1.srv": a_job(), "2.srv": a_job() | job, "3[].srv": job},
        {"n1": a_vnode("n1"), name or "n2": a_vnode("n2") | vnode},
        queues={"workq": a_queue(), "odd": a_queue() | queue},
        server={"scheduling": "True"} | {k: v for k, v in server.items() if k == "Priority"},
        reservations={"R1.srv": reservation},
    )
    if name == "n1" or "n1" in str(job) or "n1" in str(reservation):
        return
    answers = Service(tables, judge=lambda _: []).cycle()
    assert isinstance(answers["1.srv"], StartOrder)


CHUNK = st.tuples(
    st.integers(1, 4), st.integers(1, 8), st.sampled_from([0, 512, 2048]),
    st.sampled_from(["", "scratch=2048mb", "color=red", "big=true", "host=n1"]),
)  # fmt: skip


@given(st.lists(CHUNK, min_size=1, max_size=3), st.sampled_from(list(Arrangement)), st.booleans())
def test_a_select_means_the_same_in_both_languages(groups, arrangement, exclusive):
    select = "+".join(
        ":".join(filter(None, [f"{n}", f"ncpus={cpus}", f"mem={mem}mb" if mem else "", word]))
        for n, cpus, mem, word in groups
    )
    place = arrangement.name.lower() + (":excl" if exclusive else "")
    # `scratch` is a size in PBS and a number of MiB in the language of chunks.
    own = parse_request(select.replace("scratch=2048mb", "scratch=2048"), place)
    report = Translation().report(world({"1.srv": a_job(select, place)}))
    requested = report.jobs["1.srv"].request.chunks
    found = parse_request(requested.chunks, requested.place)
    hosts = {word for *_, word in groups}
    if hosts == {"host=n1"} or "host=n1" not in hosts:
        assert format_request(found) == format_request(own)
    assert format_place(found.place) == format_place(own.place)


@pytest.mark.parametrize(
    ("status", "ran_s", "ending"),
    [("0", 10, pb.ENDING_COMPLETED), ("1", 10, pb.ENDING_FAILED), ("271", 10, pb.ENDING_CANCELLED),
     ("271", 600, pb.ENDING_TIMEOUT), ("-3", 10, pb.ENDING_LOST), ("", 10, pb.ENDING_COMPLETED)],
)  # fmt: skip
def test_ends(status, ran_s, ending):
    job = running("(n1:ncpus=1)", stime=str(NOW_S), Exit_status=status)
    found = ended("1.srv", job, NOW_S + ran_s)
    assert (found.ending, found.end_s - found.start_s, found.time_limit_s) == (ending, ran_s, 600)
    assert ended("1.srv", a_job(), NOW_S) is None
