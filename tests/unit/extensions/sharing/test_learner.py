# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.sharing.experts import QUOTAS_PERCENT, read_experts
from bridge.extensions.sharing.learner import Choice, HostRound, Learner
from bridge.extensions.sharing.observation import Observation

HOST = Observation(30.0, 20.0, 1.0, 10.0, 1.0)
EXPERTS = read_experts(
    "experts: [{name: none, tree: {0: 1}}, {name: half, tree: {50: 1}},"
    " {name: mixed, tree: {10: 0.5, 50: 0.5}}]"
)


def test_at_first_all_experts_count_the_same():
    mixture = Learner.new(3).mixture(EXPERTS, HOST)
    assert mixture == pytest.approx([1 / 3, 1 / 6, 0, 1 / 2, 0])


def test_the_weights_are_those_of_the_formula():
    learner = Learner(np.array([0.0, 1.0, 0.5]), decisions=7)
    rate = math.sqrt(8 * math.log(3) / 8)
    raw = [math.exp(-rate * risk) for risk in (0.0, 1.0, 0.5)]
    assert learner.weights() == pytest.approx([each / sum(raw) for each in raw])


def test_experts_are_charged_with_what_they_advised():
    learner = Learner.new(3).told(Choice(50, np.array([0.0, 1.0, 0.5])), 0.8)
    assert learner.risk == pytest.approx([0, 0.8, 0.4])
    assert learner.weights()[0] > learner.weights()[2] > learner.weights()[1]


def test_a_loss_that_comes_late_is_charged_to_the_advice_of_its_time():
    rng = np.random.default_rng(1)
    learner = Learner.new(3)
    first = learner.choose(EXPERTS, HOST, rng)
    second = learner.choose(EXPERTS, HOST, rng)
    one = learner.told(first, 1.0).told(second, 0.25)
    other = learner.told(second, 0.25).told(first, 1.0)
    assert one.risk == pytest.approx(other.risk)


def test_a_harmful_quota_is_given_up():
    rng = np.random.default_rng(2)
    learner = Learner.new(3)
    for _ in range(200):
        choice = learner.choose(EXPERTS, HOST, rng)
        learner = learner.told(choice, 1.0 if choice.quota_percent == 50 else 0.0)
    assert learner.mixture(EXPERTS, HOST)[QUOTAS_PERCENT.index(50)] < 0.1


def test_one_expert_is_followed_without_weights():
    learner = Learner.new(1).told(Choice(50, np.array([1.0])), 1.0)
    assert learner.weights().tolist() == [1.0]
    assert learner.excess_risk() == pytest.approx(0)


@pytest.mark.parametrize("loss", [-0.1, 1.1, math.nan])
def test_a_loss_is_between_0_and_1(loss):
    with pytest.raises(ValueError, match="not between"):
        Learner.new(3).told(Choice(0, np.zeros(3)), loss)


def test_other_experts_are_noticed():
    with pytest.raises(ValueError, match="2 experts, not 3"):
        Learner.new(3).told(Choice(0, np.zeros(2)), 0)
    with pytest.raises(ValueError, match="no experts"):
        Learner.new(0)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.tuples(st.lists(st.floats(0, 1), min_size=n, max_size=n), st.floats(0, 1)),
            min_size=1,
            max_size=60,
        )
    )
)
def test_the_excess_risk_is_bounded_whatever_happens(rounds):
    learner = Learner.new(len(rounds[0][0]))
    risk = np.zeros(len(rounds[0][0]))
    mixture = 0.0
    for advice, loss in rounds:  # the sums of rule 4, by their definition
        mixture += float(learner.weights() @ np.array(advice)) * loss
        risk += np.array(advice) * loss
        learner = learner.told(Choice(10, np.array(advice)), loss)
    assert learner.excess_risk() == pytest.approx(mixture - risk.min(), abs=1e-9)
    assert learner.excess_risk() <= learner.bound() + 1e-9


def adversary(weights, t):
    """Charges the expert that the learner follows most."""
    return (np.arange(len(weights)) == weights.argmax()).astype(float), 1.0


def turncoat(weights, t):
    """Charges one half of the experts for a long time, and then the other half."""
    return (np.arange(len(weights)) % 2 == t // 100 % 2).astype(float), 1.0


def good_expert(weights, t):
    """All but the last expert always advise what costs most."""
    return (np.arange(len(weights)) < len(weights) - 1).astype(float), 0.9


@pytest.mark.parametrize("environment", [adversary, turncoat, good_expert])
@pytest.mark.parametrize("experts", [2, 5, 20])
def test_the_excess_risk_is_bounded_in_hostile_environments(environment, experts):
    learner = Learner.new(experts)
    for t in range(500):
        advice, loss = environment(learner.weights(), t)
        learner = learner.told(Choice(10, advice), loss)
        assert learner.excess_risk() <= learner.bound() + 1e-9
    # T = 500: ln(E) / gamma_T + sum_t gamma_t / 8 is below 3 sqrt(T ln(E) / 8)
    assert learner.bound() <= 3 * math.sqrt(500 * math.log(experts) / 8)


@pytest.mark.parametrize("environment", [adversary, good_expert])
def test_who_never_learns_exceeds_the_bound_there(environment, monkeypatch):
    """Else the test above would say nothing."""
    monkeypatch.setattr(Learner, "weights", lambda self: np.full(5, 0.2))
    learner = Learner.new(5)
    for t in range(500):
        learner = learner.told(Choice(10, environment(learner.weights(), t)[0]), 0.9)
    assert learner.excess_risk() > learner.bound()


def test_a_host_is_closed_when_its_losses_reach_the_threshold():
    round_ = HostRound().after(0.4).after(0.4)
    assert (round_.loss, round_.closed) == (pytest.approx(0.8), False)
    assert round_.after(0.2) == HostRound(0.0, closed=True)
