# SPDX-License-Identifier: Apache-2.0
"""What is made of agents that tell the truth, lie, are late, or are dead."""

import math

import pytest

from bridge.extensions.power.load_curves import APART_S, KEPT, LAG_S, REQUEST_LAG_S
from bridge.extensions.power.lost_power import Claim
from bridge.extensions.power.memory import state_types
from bridge.extensions.power.node_sensor import MAX_JOBS
from bridge.extensions.power.power_use import (
    MAX_NAMED,
    MAX_READINGS,
    MAX_W,
    OTHERS,
    SLACK,
    STALE_S,
    PowerUse,
)
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.recent import MIN_S, SETTLE_S, WINDOW_S
from bridge.rpc.pb import agent_pb2 as pb


class Clock:
    s = 1000.0

    def __call__(self):
        return self.s


def a_use(watts=100.0, jobs=("7",), node="n1", age_ms=0, source="rapl", cpus=None):
    message = pb.Use()
    power = message.nodes.add(node=node, source=source, age_ms=age_ms)
    if watts is not None:
        power.watts = watts
    for number, job in enumerate(jobs):
        message.jobs.add(job=job, node=node, cpus=1 if cpus is None else cpus[number])
    return message


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def power(clock):
    found = PowerUse(clock)
    found.clock = clock
    return found


def reports(power, *watts, node="n1", **more):
    """One a second, of an agent that speaks for n1, n2 and n3."""
    for each in watts:
        power.clock.s += 1
        use = a_use(each, node=node, **more)
        power.took("n1", {"n1", "n2", "n3"}, pb.Uses(uses=[use]))


LONG = int(MIN_S) + 1


def bounds(power, job, nodes, stated):
    """Those of the only job on some nodes, with what is stated of it on each."""
    maximum = [power.types.get(name, (0, 0))[1] for name in nodes]
    claims = zip(nodes, map(Claim, stated, maximum), strict=True)
    power.state_claims({name: {job: claim} for name, claim in claims})
    return power.job_bounds(job, nodes)


def test_a_job_alone_draws_all_of_its_nodes(power):
    reports(power, *[100] * LONG)
    reports(power, *[200.5] * LONG, node="n2")
    assert power.job_bounds("7", ["n1"]) == (100, 100)
    assert power.job_bounds("7", ["n1", "n2"]) == (150, 151)  # W per node, rounded outwards
    assert power.job_bounds("8", ["n1"]) == (0, 0)


def test_a_job_that_has_just_begun_is_not_measured(power):
    reports(power, *[100] * (LONG - 1))
    assert power.job_bounds("7", ["n1"]) == (0, 0)


def test_what_a_node_draws_as_a_job_begins_there_does_not_count(power):
    reports(power, *[71] * 4, *[200] * (LONG - 4))
    assert power.job_bounds("7", ["n1"]) == (200, 200)


def test_a_node_that_is_new_to_a_job_counts_as_its_others_do(power):
    """A job that grows is not expected to draw idle and maximum power on its new nodes."""
    power.state_types(dict.fromkeys(("n1", "n2", "n3"), (71, 275)))
    reports(power, *[200] * LONG)
    reports(power, 71, node="n2", jobs=())
    assert power.job_bounds("7", ["n1", "n2"]) == (200, 200)
    reports(power, *[71, 230], node="n2")
    assert power.job_bounds("7", ["n1", "n2"]) == (200, 200)
    for _ in range(LONG):
        reports(power, 230, node="n2")
        reports(power, 200)
    assert power.job_bounds("7", ["n1", "n2"]) == (215, 215)
    assert power.job_bounds("7", ["n1", "n2", "n3"]) == (167, 235)  # its agent says nothing


def test_a_node_on_which_an_agent_hides_a_job_is_not_new_for_long(power):
    power.state_types(dict.fromkeys(("n1", "n2"), (71, 275)))
    for _ in range(2 * int(STALE_S)):
        reports(power, 200)
        reports(power, 71, node="n2", jobs=())
        hidden = power.job_bounds("7", ["n1", "n2"])
    assert hidden == ((200 + 71) // 2, -(-(200 + 275) // 2))


def test_bounds_leave_out_the_rare(power):
    reports(power, *[100] * 20, 30, *[100] * 20, 300, *[100] * 18)
    assert power.job_bounds("7", ["n1"]) == (100, 100)
    reports(power, *[300] * 5)
    assert power.job_bounds("7", ["n1"]) == (100, 300)


def test_jobs_that_share_a_node_share_what_is_above_idle(power):
    power.state_types({"n1": (60, 300)})
    reports(power, *[160] * LONG, jobs=("7", "8"), cpus=(3, 1))
    assert power.job_bounds("7", ["n1"]) == (60 + 75, 60 + 75)
    assert power.job_bounds("8", ["n1"]) == (60 + 25, 60 + 25)
    power.clock.s += 2 * WINDOW_S
    reports(power, *[160] * LONG, jobs=("7", "8"), cpus=(0, 0))
    assert power.job_bounds("8", ["n1"]) == (110, 110)


def test_nobody_has_a_share_while_one_is_new(power):
    reports(power, *[160] * LONG)
    message = a_use(300, jobs=("7", "8"))
    message.jobs[1].ClearField("cpus")
    power.clock.s += 1
    power.took("n1", ["n1"], pb.Uses(uses=[message]))
    assert power.job_bounds("7", ["n1"]) == (160, 160)


# ------------------------------------------------------------------ agents that lie


@pytest.mark.parametrize("watts", [-1.0, 0.0, math.nan, math.inf, -math.inf])
def test_what_is_no_power_is_refused(power, watts):
    reports(power, *[watts] * LONG)
    assert power.refused == {("n1", "number"): LONG}
    assert power.job_bounds("7", ["n1"]) == (0, 0)
    assert power.nodes() == {}


def test_what_the_nodes_type_cannot_draw_is_refused(power):
    power.state_types({"n1": (70, 250)})
    reports(power, 70 * (1 - SLACK) - 1, 250 * (1 + SLACK) + 1, MAX_W)
    assert power.refused == {("n1", "range"): 3}
    reports(power, 70 * (1 - SLACK), 250 * (1 + SLACK))
    assert power.nodes()["n1"].watts == 250 * (1 + SLACK)


def test_without_a_type_the_absurd_is_refused(power):
    reports(power, MAX_W * (1 + SLACK) + 1, node="n2")
    assert power.refused == {("n1", "range"): 1}


def test_a_refused_value_takes_the_place_of_none(power):
    reports(power, *[100] * LONG, -1, math.nan)
    assert power.job_bounds("7", ["n1"]) == (100, 100)
    assert power.nodes()["n1"].watts == 100


def test_another_agents_node_is_refused_with_its_jobs(power):
    power.took("n1", {"n1"}, pb.Uses(uses=[a_use(node="n2")]))
    message = pb.Use()
    message.jobs.add(job="7", node="n2", cpus=1)
    power.took("n1", {"n1"}, pb.Uses(uses=[message]))
    assert power.refused["n1", "node"] == 3  # a node, its job, and a job alone
    assert power.nodes() == {}


@pytest.mark.parametrize("job", ["", "-7", "7_1", "٧", "9" * 21])
def test_what_is_no_job_is_refused_alone(power, job):
    reports(power, *[100] * LONG, jobs=("7", job))
    assert power.job_bounds("7", ["n1"]) == (100, 100)
    assert power.refused == {("n1", "number"): LONG}


@pytest.mark.parametrize("cpus", [-1.0, math.nan, math.inf])
def test_what_is_no_cpu_time_is_refused(power, cpus):
    reports(power, *[100] * LONG, jobs=("7", "8"), cpus=(1, cpus))
    assert power.refused == {("n1", "number"): LONG}


def test_more_jobs_than_a_node_can_have_are_refused(power):
    reports(power, 100, jobs=[str(number) for number in range(MAX_JOBS + 1)])
    assert power.refused == {("n1", "many"): 1}


def test_names_in_counts_are_bounded(power):
    told = []
    power.tell = lambda agent, reason: told.append(agent)
    for number in range(MAX_NAMED + 50):
        power.took(f"n{number}", ["n1"], pb.Uses(uses=[a_use(-1.0)]))
    assert len(power.refused) == MAX_NAMED + 1
    assert power.refused[OTHERS, "number"] == 50
    assert told[-1] == OTHERS


def test_more_readings_than_a_message_may_have_are_refused(power):
    power.took("n1", ["n1"], pb.Uses(uses=[a_use()] * (MAX_READINGS + 1)))
    assert power.refused == {("n1", "many"): 1}
    assert power.nodes() == {}


def test_the_readings_of_a_message_have_their_own_ages(power):
    power.clock.s += 60
    uses = []
    for ago_s in range(LONG, -1, -1):
        use = a_use(100 + ago_s)
        use.ago_ms = 1000 * ago_s
        uses.append(use)
    power.took("n1", ["n1"], pb.Uses(uses=uses))
    assert power.job_bounds("7", ["n1"]) == (100, 100 + LONG - SETTLE_S)
    assert power.nodes()["n1"].age_s == 0
    use.ago_ms = int(STALE_S * 1000) - 1000
    power.took("n1", ["n1"], pb.Uses(uses=[use]))
    use.nodes[0].age_ms = 1001
    power.took("n1", ["n1"], pb.Uses(uses=[use]))
    assert power.refused == {("n1", "late"): 1}  # both ages together


def test_jobs_that_have_gone_are_forgotten(power):
    for number in range(300):
        reports(power, 100, jobs=(str(number),))
    assert len(power._nodes["n1"].jobs) < 2 * WINDOW_S


# ------------------------------------------------------------------ late and dead agents


def test_a_silent_agents_values_age_and_end(power):
    reports(power, *[100] * LONG)
    power.clock.s += STALE_S
    assert power.job_bounds("7", ["n1"]) == (100, 100)
    assert not power.nodes()["n1"].stale
    assert power.counts() == (1, 0)
    power.clock.s += 0.1
    assert power.job_bounds("7", ["n1"]) == (1, 100)  # its last value counts on
    assert power.job_bounds("8", ["n1"]) == (0, 0)
    assert power.nodes()["n1"].stale
    assert power.counts() == (0, 1)


def test_a_stale_node_counts_with_what_its_type_may_draw(power):
    power.state_types({"n1": (70, 250), "n2": (70, 250)})
    reports(power, *[100] * LONG, node="n2")
    power.clock.s += STALE_S
    reports(power, *[100] * LONG)
    assert power.job_bounds("7", ["n1", "n2"]) == (85, 175)
    power.clock.s += STALE_S + 1
    assert power.job_bounds("7", ["n1", "n2"]) == (70, 250)


def test_old_values_are_refused_and_those_of_a_slow_meter_have_their_age(power):
    reports(power, 100, age_ms=int(STALE_S * 1000) + 1)
    assert power.refused == {("n1", "late"): 1}
    reports(power, 100, age_ms=int(STALE_S * 1000) - 1000)
    assert power.nodes()["n1"].age_s == STALE_S - 1
    power.clock.s += 2
    assert power.nodes()["n1"].stale


def test_a_burst_after_a_pause_is_one_value(power):
    reports(power, *[100] * LONG)
    for watts in (500, 500, 500, 500, 100):  # all at once, when the network is back
        power.took("n1", ["n1"], pb.Uses(uses=[a_use(watts)]))
    power.clock.s += 1
    assert power.job_bounds("7", ["n1"]) == (100, 100)


def test_a_value_that_overtakes_another_stays(power):
    reports(power, 100)
    power.clock.s += 1
    power.took("n1", ["n1"], pb.Uses(uses=[a_use(500, age_ms=20_000)]))
    assert power.nodes()["n1"].watts == 100


# ------------------------------------------------------------------ behind the hub


class Node:
    def __init__(self, hub, *nodes):
        self.sent = []
        self.hub, self.agent = hub, hub.arrived(nodes, self.sent.append)

    def draws(self, *messages):
        for message in messages:
            self.hub.report(self.agent, pb.AgentReport(uses=pb.Uses(uses=[message])))


def test_an_agent_is_heard_for_its_own_nodes_only(clock):
    hub = Hub(clock)
    first, second = Node(hub, "n1"), Node(hub, "n2")
    second.draws(a_use(node="n1"))
    assert hub.extensions.get("power").refused == {("n2", "node"): 1}
    assert hub.reports.refused == {("n2", "elsewhere"): 1}  # what it says of the job there
    assert hub.extensions.get("power").nodes() == {}
    first.draws(a_use())
    assert set(hub.extensions.get("power").nodes()) == {"n1"}
    Node(hub, "n1")
    first.draws(a_use(150))  # another has taken its place
    assert hub.extensions.get("power").nodes()["n1"].watts == 100


def test_agents_are_told_what_their_nodes_draw(clock):
    hub = Hub(clock)
    early = Node(hub, "n1", "n2")
    state_types(hub, {"n1": (70, 250), "n3": (10, 20)})
    late = Node(hub, "n3")
    state_types(hub, {"n1": (70, 250), "n3": (10, 30)})
    state_types(hub, {"n1": (70, 250), "n3": (10, 30)})
    told = [[(o.model.node, o.model.idle_w, o.model.max_w) for o in node.sent]
            for node in (early, late)]  # fmt: skip
    assert told == [[("n1", 70, 250)], [("n3", 10, 20), ("n3", 10, 30)]]


def test_values_of_nodes_that_the_site_no_longer_states_are_forgotten(clock):
    hub = Hub(clock)
    state_types(hub, {"n1": (70, 250)})
    Node(hub, "n1").draws(a_use())
    state_types(hub, {})
    assert hub.extensions.get("power").nodes() == {}


# ------------------------------------------------------------------ lost measurements


def a_measured_node(power, watts=445, types=(70, 500)):
    power.state_types(dict.fromkeys(("n1", "n2"), types))
    reports(power, *[watts] * LONG)
    reports(power, *[watts] * LONG, node="n2")


def test_the_model_does_not_replace_a_meter(power, caplog):
    """Measured 445 W, modelled 250 W: the jobs of two nodes draw 890 W, whatever the model says."""
    a_measured_node(power)
    assert bounds(power, "7", ["n1", "n2"], (300, 300)) == (445, 445)
    for _ in range(LONG):
        reports(power, 250, source="model")
        reports(power, 250, source="model", node="n2")
    assert bounds(power, "7", ["n1", "n2"], (300, 300)) == (70, 445)
    assert bounds(power, "7", ["n1", "n2"], (480, 300)) == (70, 463)  # each by its greatest
    assert bounds(power, "7", ["n1"], (500,)) == (70, 500)  # only its type is stated
    assert bounds(power, "8", ["n1"], (300,)) == (70, 300)  # never measured there
    assert power.switches == {("rapl", "model"): 2}
    text = "model in place of rapl (the last value was 445 W)"
    assert sum(text in line for line in caplog.messages) == 2


@pytest.mark.parametrize(("measured", "room"), [(400, 430), (520, 450)])
def test_jobs_of_a_lost_node_count_together_with_what_it_can_draw(power, measured, room):
    """Beyond idle they state 560 W; the node can draw 430, or the 450 that it was seen to draw."""
    power.state_types({"n1": (70, 500), "n2": (70, 500)})
    for node in ("n1", "n2"):
        reports(power, *[measured] * LONG, node=node, jobs=("7", "8"))
        reports(power, 100, node=node, source="model", jobs=("7", "8"))
    power.state_claims({
        "n1": {"7": Claim(300, 285), "8": Claim(400, 285)},
        "n2": {"7": Claim(300, 285), "8": Claim(300, 285)},
    })  # fmt: skip
    upper_w = [power.job_bounds(job, ["n1"])[1] for job in ("7", "8")]
    assert upper_w == [70 + room * 230 // 560, 70 + room - room * 230 // 560]
    both_w = sum(power.job_bounds(job, ["n2"])[1] for job in ("7", "8"))
    assert both_w == 2 * 70 + room


def test_what_the_model_says_counts_if_it_is_the_greatest(power):
    a_measured_node(power, 100)
    reports(power, 120, 400, 130, source="model")
    assert bounds(power, "7", ["n1"], (300,)) == (70, 400)


@pytest.mark.parametrize("how", ["no value", "impossible", "silent"])
def test_a_meter_that_says_nothing_is_lost(power, how):
    """The other node, whose meter works, counts as before."""
    a_measured_node(power)
    for _ in range(int(STALE_S) + 2):
        power.clock.s += 1
        if how != "silent":
            watts = None if how == "no value" else 0.0
            power.took("n1", {"n1"}, pb.Uses(uses=[a_use(watts)]))
        power.took("n2", {"n2"}, pb.Uses(uses=[a_use(300, node="n2")]))
    power.look()
    assert bounds(power, "7", ["n1"], (300,)) == (70, 500)
    assert power.job_bounds("7", ["n2"])[1] == 445
    assert power.switches == {("rapl", "none"): 1}
    assert power.sensors() == {"lost": 1, "measured": 1}
    (told,) = power.losses()
    assert told.startswith("n1: rapl is lost since ")
    assert "last value 445 W; in its place none" in told


def test_a_meter_counts_again_when_it_has_had_values_for_a_while(power):
    a_measured_node(power)
    reports(power, 250, source="model")
    for _ in range(3):  # it comes and goes
        reports(power, 460, 200)
        assert bounds(power, "7", ["n1"], (100,)) == (70, 460)
        reports(power, 250, source="model")
    reports(power, *[200] * (LONG - 1))
    assert bounds(power, "7", ["n1"], (100,)) == (70, 460)
    reports(power, 200)
    assert bounds(power, "7", ["n1"], (100,)) == (200, 200)
    assert power.losses() == []
    assert power.switches["rapl", "model"] == power.switches["model", "rapl"] == 4


def test_of_two_lost_nodes_one_comes_back(power):
    a_measured_node(power)
    for name in ("n1", "n2"):
        reports(power, 250, node=name, source="model")
    reports(power, *[200] * LONG)
    reports(power, 250, node="n2", source="model")
    assert [told.partition(":")[0] for told in power.losses()] == ["n2"]
    assert bounds(power, "7", ["n1", "n2"], (100, 100)) == ((200 + 70) // 2, 323)
    source = power.source(["n1", "n2"])
    assert source.text == "model in place of rapl, rapl"
    assert source.lost_s is not None


def test_a_loss_before_the_service_started_is_told_by_the_agent(power):
    power.state_types({"n1": (70, 500)})
    use = a_use(250, source="model")
    use.nodes[0].lost_source, use.nodes[0].lost_watts = "rapl", 445.0
    power.took("n1", {"n1"}, pb.Uses(uses=[use]))
    assert bounds(power, "7", ["n1"], (300,)) == (70, 445)
    assert power.nodes()["n1"].lost == "rapl"
    wild = a_use(250, node="n2", source="model")
    wild.nodes[0].lost_source, wild.nodes[0].lost_watts = "rapl", math.inf
    power.took("n2", {"n2"}, pb.Uses(uses=[wild]))
    assert power.nodes()["n2"].lost == ""


def test_nodes_without_a_meter_are_modelled_and_not_lost(power):
    reports(power, *[250] * LONG, source="model")
    assert power.job_bounds("7", ["n1"]) == (250, 250)
    assert power.sensors() == {"modelled": 1}
    assert power.source(["n1"]).text == "model"
    assert not power.switches


def test_sources_of_any_name_are_counted_as_few_kinds(power):
    for number in range(50):
        reports(power, 100, source=f"made up {number}")
    assert set(power.switches) == {("others", "others")}


def test_what_a_loss_keeps_of_jobs_that_have_gone_is_forgotten(power):
    a_measured_node(power)
    reports(power, 250, source="model")
    reports(power, 250, node="n2", source="model")
    power.state_claims({"n2": {"7": Claim(300, 500)}})
    assert power._nodes["n1"].lost.jobs == {}
    assert power._nodes["n2"].lost.jobs == {"7": 445}


def test_an_agent_that_names_other_jobs_each_time_costs_no_memory_and_no_log(power, caplog):
    """Its source alternates, too. Of the other agent's node all is kept and logged."""
    a_measured_node(power)
    caplog.clear()
    for number in range(200):
        jobs = [str(10_000 + 100 * number + job) for job in range(100)]
        reports(power, 445, jobs=jobs, source=("rapl", "pm_counters")[number % 2])
        power.look()
    noisy = power._nodes["n1"]
    assert len(noisy.lost.jobs) == MAX_JOBS
    assert noisy.lost.any_w > 0  # the jobs that are not kept do not count with less
    power.took("n2", {"n2"}, pb.Uses(uses=[a_use(250, node="n2", source="model")]))
    told = [line.partition(":")[0] for line in caplog.messages]
    assert 0 < told.count("power of n1") <= 3 * 2 * 4  # three kinds, twice a minute
    assert told.count("power of n2") == 2  # silent, and back
    assert any("more times within a minute" in line for line in caplog.messages)
    assert bounds(power, "7", ["n2"], (300,)) == (70, 445)
    assert power.switches["rapl", "pm_counters"] + power.switches["pm_counters", "rapl"] == 199


def test_the_jobs_of_one_source_are_bounded(power):
    a_measured_node(power)
    for number in range(20):
        reports(power, 445, jobs=[str(10_000 + 100 * number + job) for job in range(100)])
    assert len(power._nodes["n1"].jobs) == MAX_JOBS
    assert set(power.refused) == {("n1", "many")}
    assert set(power._nodes["n2"].jobs) == {"7"}


# ------------------------------------------------------------------ what a model is fitted to


def loaded(power, watts, busy, seconds, source="rapl", node="n1", cpus=4.0):
    """A reading a second at one load."""
    for _ in range(seconds):
        use = a_use(watts, node=node, source=source)
        if busy is not None:
            use.nodes[0].busy_cpus = busy
        use.nodes[0].cpus = cpus
        power.clock.s += 1
        power.took("n1", {"n1", "n2", "n3"}, pb.Uses(uses=[use]))


def curve_of(power, node="n1"):
    found = power.curves()[node]
    return sorted(zip(found.load, found.watts, strict=True))


def test_readings_at_a_steady_load_are_kept_apart(power):
    loaded(power, 71, 0, 60)
    loaded(power, 250, 4, 60)
    every = int(60 - LAG_S) // int(APART_S)
    assert curve_of(power) == [(0, 71)] * (every + 1) + [(1, 250)] * (every + 1)
    loaded(power, 250, 4, 10_000)
    assert curve_of(power) == [(0, 71)] * (every + 1) + [(1, 250)] * KEPT


def test_while_the_load_changes_nothing_is_kept(power):
    for busy in (0, 4) * 50:
        loaded(power, 160, busy, int(LAG_S))
    assert curve_of(power) == []
    for step in range(0, 400, 10):  # creeping is a change, too
        loaded(power, 160, step / 100, 1)
    assert curve_of(power) == []


def test_what_slurm_measures_lags_behind_for_longer(power):
    loaded(power, 71, 4, int(REQUEST_LAG_S), "slurm:ipmi")
    assert curve_of(power) == []
    loaded(power, 250, 4, 1, "slurm:ipmi")
    assert curve_of(power) == [(1, 250)]


@pytest.mark.parametrize(
    ("busy", "cpus", "source"),
    [(None, 4, "rapl"), (1, 0, "rapl"), (1, math.nan, "rapl"), (1, math.inf, "rapl"),
     (-1, 4, "rapl"), (math.nan, 4, "rapl"), (1, 4, "model")],
)  # fmt: skip
def test_without_a_load_or_a_meter_nothing_is_kept(power, busy, cpus, source):
    loaded(power, 71, busy, 60, source, cpus=cpus)
    assert curve_of(power) == []
    assert power.curves()["n1"].metered == (source != "model")


def test_values_outside_of_a_wrong_type_are_kept_and_others_are_not(power):
    power.state_types({"n1": (1, 2)})
    loaded(power, 71, 0, 10)
    assert {watts for _, watts in curve_of(power)} == {71}
    assert power.nodes() == {}  # refused for all else
    loaded(power, -71, 0, 100)
    loaded(power, math.nan, 0, 100)
    assert {watts for _, watts in curve_of(power)} == {71}
    power.forget(["n1"])
    assert power.curves() == {}
