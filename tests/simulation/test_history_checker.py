# SPDX-License-Identifier: Apache-2.0
"""The checker fails: a doctored history for every rule, beside the same one undoctored."""

from schedbridge_contracts.crosses import each
from tests.simulation.whole.checker import RULES, judge
from tests.simulation.whole.history import Event

NOW = 1_000


def ask(**changes):
    plain = {
        "partitions": ["all"], "limit_s": 100, "nodes": 1, "most_nodes": 1, "tasks": 0, "cpus": 2,
        "memory_mib": 0, "exclusive": False, "features": "", "excluded": [], "licences": [],
        "deadline_s": 0, "least_s": 0, "fixed": False, "reservation": "", "chunks": "", "place": "",
    }  # fmt: skip
    return plain | changes


class Tale:
    """Writes a history: `at_ms` goes on by a second with every event, the clock with it."""

    def __init__(self, policy="openccs", **rules):
        self.events = []
        self.calls = 0
        self.add("begin", rules=rules, policy=policy, memory_counts=True)
        for name in ("n1", "n2"):
            self.node(name)
        self.add("partition", name="all", nodes=["n1", "n2"], up=True, most_s=0, exclusive=False)
        self.add("licences", total={"lic": 1})
        self.up()
        self.add("controller_up", name="main", epoch=5, active=True)

    def add(self, kind, **what):
        at_ms = len(self.events) * 1000
        self.events.append(Event(at_ms, kind, {"now_s": NOW, **what}))
        return self

    def node(self, name, **changes):
        plain = {"name": name, "cpus": 4, "memory_mib": 1000, "features": [], "usable": True}
        return self.add("node", **plain | changes)

    def up(self, promises=(), epoch=9, life=1, carried=None):
        return self.add("service_up", life=life, epoch=epoch, policy="openccs",
                        on_disk=disk(promises), carried=carried)  # fmt: skip

    def submit(
        self, job="1", user="alice", *, begin_s=0, held=False, array=0, maximum=0, **changes
    ):
        return self.add(
            "submit", job=job, user=user, account="phys", priority=1, begin_s=begin_s, held=held,
            array_tasks=array, array_most=maximum, version=1, ask=ask(**changes),
        )  # fmt: skip

    def start(self, job="1", nodes=(("n1", 2),), by="service", limit_s=100, **changes):
        held = {name: [cpus, 0] for name, cpus in nodes}
        plain = {"job": job, "by": by, "partition": "all", "limit_s": limit_s, "nodes": held}
        return self.add("start", **plain | changes)

    def report(self, *, name="main", full=False, untrue="", outcomes=(), now_s=NOW):
        self.calls += 1
        return self.add(
            "report", name=name, call=self.calls, generation=self.calls, base=0, full=full,
            now_s=now_s, jobs=[], removed=[], untrue=untrue, active=True, outcomes=list(outcomes),
        )  # fmt: skip

    def reply(self, *, plans=None, starts=(), ids=(), epoch=9, known=None, call=0):
        return self.add(
            "reply", call=call or self.calls, life=1, epoch=epoch, generation=self.calls, wake_s=0,
            plans=plans or {}, starts=list(starts), ids=list(ids),
            known=known,
        )  # fmt: skip

    def told(self, job="1", start_s=0):
        return self.add("told", job=job, start_s=start_s, nodes=[], code=1, text="waits")

    def outcome(self, decision=1, outcome="applied", action="start", job="1", epoch=9):
        return self.add("outcome", decision=decision, job=job, action=action, outcome=outcome,
                        text="", epoch=epoch)  # fmt: skip

    def over(self):
        return self.add("over", events=0)

    def broken(self):
        return [found.rule for found in judge(self.events)]


def disk(promises=(), starts=()):
    rows = [[job, start_s, start_s, 0] for job, start_s in promises]
    return {"promises": rows, "starts": [list(start) for start in starts]}


def ended(tale, job="1"):
    return tale.add("end", job=job, why="completed").add("clean", job=job)


A_START = [1, "1", 1, "n1", "all"]
WAITING = {"waiting": ["1", "2"], "holding": []}

GOOD = {
    "a job runs": ended(Tale().submit().start()).over(),
    "a job waits, held, and knows why": Tale().submit(held=True).told().over(),
    "two share a node": Tale().submit("1").submit("2").start("1").start("2"),
    "an announced start moves earlier": Tale().submit().report().reply(plans={"1": 1100}).report()
    .reply(plans={"1": 1090}),
    "it moves later because a node went": Tale().submit().report().reply(plans={"1": 1100})
    .node("n2", usable=False).report().reply(plans={"1": 1200}),
    "it moves later because another job started later than was decided": Tale().submit("1")
    .submit("2").report().reply(ids=[1], starts=[A_START], plans={"2": 1100})
    .start("1", now_s=NOW + 2).outcome().report(outcomes=[1]).reply(plans={"2": 1102}),
    "it moves later because the limit of another one was raised": Tale().submit("1").submit("2")
    .report().reply(plans={"1": 1100, "2": 1100})
    .add("alter", job="1", version=2, begin_s=0, held=False, priority=1, ask=ask(limit_s=10_000))
    .report().reply(plans={"1": 1100, "2": 1200}),
    "another policy promises nothing": Tale("easy").submit().report().reply(plans={"1": 1100})
    .report().reply(plans={"1": 1200}),
    "memory is kept": Tale().add("service_down", how="stopped", life=1, on_disk=disk([("1", 5)]))
    .up([("1", 5)], life=2),
    "what is kept to is carried on": Tale().add("service_down", how="stopped", life=1,
        on_disk=disk(), carried={"1": 5}).up(life=2, carried={"1": 5}),
    "a refusal after a change": Tale().submit().report().reply(ids=[1]).node("n1", usable=False)
    .outcome(outcome="refused"),
    "an outcome is counted": Tale().submit().report().reply(ids=[1]).outcome()
    .report(outcomes=[1]).add("counted", call=2, life=1, counted={"applied 0": 1}),
    "a start is decided again when its fate is known, or after 10 s": Tale().submit()
    .report().reply(ids=[1], starts=[A_START]).node("n1").outcome(outcome="refused")
    .report(outcomes=[1]).reply(ids=[2], starts=[[2, *A_START[1:]]])
    .report(now_s=NOW + 10).reply(ids=[3], starts=[[3, *A_START[1:]]]),
    "an older full report comes late": Tale().submit().report(full=True).report()
    .reply(ids=[1], starts=[A_START]).reply(ids=[2], starts=[[2, *A_START[1:]]], call=1),
    "a full report is answered in full": Tale().submit("1").submit("2").report(full=True).reply(
        known=WAITING, starts=[A_START], plans={"2": 0}).report().reply(known=WAITING),
    "a limit is reached": Tale(limits=[{"user": "*", "resource": "cpus", "items": "4"}])
    .submit("1").submit("2").start("1").start("2", [("n2", 2)]),
}  # fmt: skip

BAD = {
    # over
    "two jobs on the same CPUs": ("over", Tale().submit("1").submit("2").start("1", [("n1", 3)])
                                  .start("2")),
    "an exclusive node is shared": ("over", Tale().submit("1", exclusive=True).submit("2")
                                    .start("1").start("2")),
    "a node that is down": ("over", Tale().submit().node("n1", usable=False).start()),
    "a licence too many": ("over", Tale().submit("1", licences=[["lic", 1]])
                           .submit("2", licences=[["lic", 1]]).start("1").start("2")),
    "a second before the begin time": ("over", Tale().submit(begin_s=NOW + 1).start()),
    "a held job": ("over", Tale().submit(held=True).start()),
    "a second beyond the deadline": ("over", Tale().submit(deadline_s=NOW + 99).start()),
    "late for its fixed start": ("over", Tale().submit(begin_s=NOW - 61, fixed=True).start()),
    "a second of a reservation": ("over", Tale().submit()
                                  .add("reserve", name="r", start_s=NOW + 99, end_s=NOW + 200,
                                       nodes=["n1"]).start()),
    "too many nodes": ("over", Tale().submit().start("1", [("n1", 2), ("n2", 2)])),
    "an excluded node": ("over", Tale().submit(excluded=["n1"]).start()),
    "a node without the feature": ("over", Tale().submit(features="x").start()),
    "a partition that is down": ("over", Tale().submit().add("partition", name="all", up=False,
                                 nodes=["n1", "n2"], most_s=0, exclusive=False).start()),
    "more tasks of an array than may": ("over", Tale().submit(array=3, maximum=1).start("1_1")
                                        .start("1_2")),
    # rules
    "a limit of a user": ("rules", Tale(limits=[{"user": "*", "resource": "cpus", "items": "3"}])
                          .submit("1").submit("2").start("1").start("2", [("n2", 2)])),
    "a limit on jobs": ("rules", Tale(limits=[{"account": "phys", "resource": "jobs",
                                               "items": "1"}])
                        .submit("1").submit("2").start("1").start("2")),
    "what a FreePool keeps": ("rules", Tale(free_pools=[{"name": "p", "resource": "cpus",
                              "keep": "7", "access": [{"users": ["carol"]}]}]).submit().start()),
    # twice
    "a job starts twice": ("twice", Tale().submit().start().start("1", [("n2", 2)])),
    "a decision is applied twice": ("twice", Tale().submit().outcome().outcome()),
    "a decision is given twice": ("twice", Tale().submit().report().reply(ids=[1]).report()
                                  .reply(ids=[1])),
    "two starts of one job in a reply": ("twice", Tale().submit().report().reply(
        ids=[1, 2], starts=[[1, "1", 1, "n1", "all"], [2, "1", 1, "n2", "all"]])),
    "a start is decided again too soon": ("twice", Tale().submit()
        .report().reply(ids=[1], starts=[A_START])
        .report(now_s=NOW + 9).reply(ids=[2], starts=[[2, *A_START[1:]]])),
    "an outcome is counted twice": ("twice", Tale().submit().report().reply(ids=[1]).outcome()
                                    .report(outcomes=[1])
                                    .add("counted", call=2, life=1, counted={"applied 0": 1})
                                    .report(outcomes=[1])
                                    .add("counted", call=3, life=1, counted={"applied 0": 1})),
    "a refusal is counted as applied": ("twice", Tale().submit().report().reply(ids=[1])
                                        .node("n1").outcome(outcome="refused")
                                        .report(outcomes=[1])
                                        .add("counted", call=2, life=1,
                                             counted={"applied 0": 1})),
    # sound
    "a node is planned that is known to be down": ("sound", Tale().node("n2", usable=False)
        .report().reply(known={"nodes": {"n1": 4, "n2": 4}, "waiting": [], "holding": []})),
    "a refusal though nothing changed": ("sound", Tale().submit().report().reply(ids=[1])
                                         .outcome(outcome="refused")),
    # lost
    "a job that could run waits": ("lost", Tale().submit().told().over()),
    "a job waits and knows nothing": ("lost", Tale().submit(held=True).over()),
    "a job never ends": ("lost", Tale().submit().start().over()),
    "an uneven job waits": ("lost", Tale().node("n2", cpus=2).submit(tasks=6, cpus=1, most_nodes=2)
                            .told().over()),
    # promise
    "an announced start moves later": ("promise", Tale().submit().report()
                                       .reply(plans={"1": 1100}).report()
                                       .reply(plans={"1": 1101})),
    "an announced start is taken back": ("promise", Tale().submit().report()
                                         .reply(plans={"1": 1100}).report()
                                         .reply(plans={"1": 0})),
    "it moves later though another job started in time": ("promise", Tale().submit("1").submit("2")
        .report().reply(ids=[1], starts=[A_START], plans={"2": 1100})
        .add("heard", name="main", call=1, good=True)
        .start("1").outcome().report(outcomes=[1]).reply(plans={"2": 1102})),
    "it moves later because a start never arrived": ("promise", Tale().submit("1").submit("2")
        .report().reply(ids=[1], starts=[A_START], plans={"2": 1100}).report()
        .reply(plans={"2": 1200})),
    "a restart forgets": ("promise", Tale().submit().report().reply(plans={"1": 1100})
                          .add("service_down", how="stopped", life=1, on_disk=disk([("1", 1100)]))
                          .up([("1", 1100)], life=2).report(full=True).reply(plans={"1": 1200})),
    # memory
    "a restart forgets what is kept to": ("memory", Tale().add("service_down", how="stopped",
        life=1, on_disk=disk(), carried={"1": 5}).up(life=2, carried={})),
    "a restart loses memory": ("memory", Tale().add("service_down", how="stopped", life=1,
                               on_disk=disk([("1", 5)])).up(life=2)),
    "an announcement is not written": ("memory", Tale().submit().report().reply(plans={"1": 1100})
                                       .add("written", life=1, full=False, on_disk=disk())),
    "a kill loses what was written": ("memory", Tale().add("written", life=1, full=False,
                                      on_disk=disk([("7", 5)]))
                                      .add("service_down", how="killed", life=1, where="call: x",
                                           on_disk=disk())),
    # answers
    "an error that is not documented": ("answers", Tale().add("exception", call=1, method="Cycle",
                                                              text="KeyError: 1")),
    "a policy fails": ("answers", Tale().submit().report().reply()
                       .add("failed", call=1, notes=["fell back"])),
    "a full report that is answered by half": ("answers", Tale().submit("1").submit("2")
        .report(full=True).reply(known=WAITING, starts=[A_START])),
    "a true report is refused": ("answers", Tale().report(full=True).add(
        "refused_call", call=1, method="Cycle", code="INVALID_ARGUMENT", text="jobs: no")),
    "everything is asked for without cause": ("answers", Tale().report(full=True).reply()
                                              .add("heard", name="main", call=1, good=True)
                                              .report().add("heard", name="main", call=2,
                                                            good=False)),
    "the service does not start": ("answers", Tale().add("no_service", life=2, why="?")),
}  # fmt: skip


@each(name=[*GOOD])
def test_what_is_right_passes(name):
    assert GOOD[name].broken() == []


@each(name=[*BAD])
def test_what_is_wrong_is_found(name):
    rule, tale = BAD[name]
    assert rule in tale.broken()


def test_an_older_controller_beside_a_newer_one_is_found():
    tale = Tale().add("controller_up", name="second", epoch=6, active=False)
    tale.report(name="second").reply()
    served = tale.events[-1]
    tale.report(name="main").reply()
    tale.events[-1] = Event(served.at_ms + 100, "reply", tale.events[-1].what)
    assert "fence" in tale.broken()


def test_every_rule_is_seen_to_fail():
    assert {rule for rule, _ in BAD.values()} | {"fence"} == {rule.name for rule in RULES}
