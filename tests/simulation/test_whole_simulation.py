# SPDX-License-Identifier: Apache-2.0
"""The whole system under one seed, 48 times: every history must pass the checker.

The same seeds in every run, so that a change is judged by what it changed; `scripts/test
simulation-long` runs 10,000 others. A failure prints its seed, a shorter script and the command
that repeats it. SCHEDBRIDGE_SEED=N runs that seed alone.
"""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.whole.checker import judge
from tests.simulation.whole.run import play
from tests.simulation.whole.script import STORM_MS, WINDS, Step, draw
from tests.simulation.whole.shrink import report, shrink

GIVEN = os.environ.get("SCHEDBRIDGE_SEED")
BATCHES, EACH = 8, 3
FIRST = 20_000
ROOT = Path(__file__).parents[2]


def judged(seed):
    """A history that passes the checker; another one ends the test."""
    outcome = play(draw(seed))
    if broken := judge(outcome.history.events):
        pytest.fail(
            f"SCHEDBRIDGE_SEED={seed} pytest {__file__}\n{report(outcome, broken)}",
            pytrace=False,
        )
    return outcome


@pytest.mark.parametrize("batch", range(1 if GIVEN else BATCHES))
def test_every_history_passes_the_checker(batch):
    """Slow: whole histories."""
    first = int(GIVEN) if GIVEN else FIRST + batch * EACH
    for seed in range(first, first + (1 if GIVEN else EACH)):
        judged(seed)


def test_the_same_seed_gives_the_same_history_in_another_process():
    """Slow: a whole history, three times."""
    seed = 4242
    script = (
        "from tests.simulation.whole.script import draw\n"
        "from tests.simulation.whole.run import play\n"
        f"print(play(draw({seed})).history.digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert digests == {play(draw(seed)).history.digest()}


def test_the_trouble_is_real():
    """Over the other half of the seeds every kind of trouble strikes; else the runs show nothing.

    Slow: some kinds are rare, and strike only once in two dozen histories.
    """
    winds: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for seed in range(24):
        winds.update(draw(seed).winds)
        for event in judged(seed).history.events:
            kinds[event.kind] += 1
            if event.kind == "outcome":
                outcomes[f"{event['action']} {event['outcome']}"] += 1
            if event.kind in ("service_down", "start", "left"):
                kinds[str(event.get("how") or event.get("by") or event.get("why"))] += 1
            if event.kind == "report" and event["untrue"]:
                kinds["untrue"] += 1
    assert set(winds) == set(WINDS)
    for kind in (
        "need_full", "refused_call", "silence", "fallback", "killed", "power", "stopped", "slurm",
        "service", "requeue", "clock", "reserve", "policy", "rules", "network", "disk", "untrue",
        "cancelled", "controller_down", "race",
    ):  # fmt: skip
        assert kinds[kind], f"{kind} never happened: {kinds}"
    assert outcomes["start applied"] > 200
    assert outcomes["planned_start applied"] > 200
    assert outcomes["start stale"], outcomes
    assert outcomes["start refused"], outcomes


def test_a_script_is_shortened_to_what_breaks_the_rule():
    script = draw(7)
    culprits = [script.steps[3], script.steps[-2]]

    def breaks(shorter, rule):
        return all(step in shorter.steps for step in culprits)

    assert list(shrink(script, "any", 200, breaks).steps) == culprits


def test_limits_hold_while_jobs_are_on_unknown_nodes():
    """Of some users' jobs the reports name nodes that there are not; others of theirs wait.

    Slow: whole histories, in each of which a limit is broken if nothing counts there.
    """
    limits = {"limits": [{"user": "*", "resource": "cpus", "items": "4"}]}
    for seed in (1, 2):
        script = draw(seed)
        steps = [step for step in script.steps if step.kind not in ("untrue", "rules")]
        steps += [
            Step(at_ms, "untrue", {"which": "unknown node", "times": 3})
            for at_ms in range(10_000, STORM_MS, 30_000)
        ]
        steps.sort(key=lambda step: step.at_ms)
        outcome = play(replace(script, rules=limits, steps=tuple(steps)))
        events = outcome.history.events
        untrue = {event["untrue"] for event in events if event.kind == "report"}
        assert untrue == {"", "unknown node"}
        assert judge(events) == [], seed
