# SPDX-License-Identifier: Apache-2.0
"""Cycles one after the other, as a service runs them, for tests."""

import numpy as np

import bridge.check.legality
from bridge.cycle import run_cycle
from bridge.model.rules.site import NO_RULES
from bridge.planning.prediction.apply_predictions import apply_predictions
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Context, Environment, Promises, State, Telemetry


class Memory:
    """What is carried from cycle to cycle, and what the last one told.

    Attributes:
        state: of the policy.
        environment: solver and oracle.
        telemetry: of the last cycle.
    """

    def __init__(self, planned_start_s=None, *, learnt=None, run_s=None, solver=None):
        self.state = State(Promises(start_s=planned_start_s or {}), learnt or {})
        self.environment = Environment(solver, run_s)
        self.telemetry = Telemetry()

    @property
    def planned_start_s(self):
        return self.state.promises.start_s

    @property
    def kept_plan(self):
        return self.state.promises.kept_plan

    @property
    def dispatched(self):
        return self.telemetry.dispatched

    @property
    def placement(self):
        return self.telemetry.placement

    def learnt_by(self, predictor):
        return self.state.learnt_by(predictor)

    def context(self, rng=None, site=NO_RULES):
        rng = np.random.default_rng(0) if rng is None else rng
        return Context(site, self.state, rng, self.environment)


def a_site(rules=None, protect=None):
    """A site from what the section `planning` says of rules, and its protections."""
    return parse_site({**(rules or {}), **({"protect": protect} if protect else {})})


def run(snapshot, memory, policy, rng=None, site=NO_RULES):
    """One cycle; the plan."""
    rng = np.random.default_rng(0) if rng is None else rng
    result = run_cycle(snapshot, site, memory.state, policy, rng, environment=memory.environment)
    memory.state, memory.telemetry = result.state, result.telemetry
    return result.plan


def plan_alone(stage, snapshot, order, preference, memory, rng=None, site=NO_RULES):
    """One plan of a plan stage, unchecked."""
    planned = stage.plan(snapshot, order, preference, memory.context(rng, site))
    memory.state = State(planned.promises, memory.state.learnt)
    memory.telemetry = Telemetry(planned.dispatched)
    return planned.plan


def predict_alone(predictor, snapshot, memory):
    """One prediction of a predict stage."""
    foreseen = predictor.predict(snapshot, memory.context())
    memory.state = State(memory.state.promises, {**memory.state.learnt, **foreseen.learnt})
    return foreseen.prediction


def check(snapshot, plan, site=NO_RULES):
    """What is illegal about a plan, by the run times it was made with."""
    if plan.predicted is not None:
        snapshot = apply_predictions(snapshot, plan.predicted)
    return bridge.check.legality.check(snapshot, site, plan)


def parse_rules(rules, key="planning"):
    """Limits and FreePools alone."""
    return parse_site(rules, key).rules
