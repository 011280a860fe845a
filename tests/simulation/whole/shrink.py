# SPDX-License-Identifier: Apache-2.0
"""Looks for a shorter script that breaks the same rule, by leaving steps out (delta debugging)."""

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.whole.checker import judge
from tests.simulation.whole.run import Outcome, play
from tests.simulation.whole.script import Script

MAX_RUNS = 60


def shrink(
    script: Script, rule: str, most_runs: int = MAX_RUNS,
    breaks: Callable[[Script, str], bool] | None = None,
) -> Script:  # fmt: skip
    """Returns a script of fewer steps that breaks the rule, too, as far as some runs find one."""
    fails = breaks or _breaks
    size, runs = max(len(script.steps) // 2, 1), 0
    while runs < most_runs:
        at, shorter = 0, False
        while at < len(script.steps) and runs < most_runs:
            fewer = replace(script, steps=script.steps[:at] + script.steps[at + size :])
            runs += 1
            if fails(fewer, rule):
                script, shorter = fewer, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return script


def _breaks(script: Script, rule: str) -> bool:
    return any(broken.rule == rule for broken in judge(play(script).history.events))


def report(outcome: Outcome, broken: list, shortened: bool = True) -> str:  # type: ignore[type-arg]
    """What a person needs to see of a run that broke a rule."""
    seed, first = outcome.script.seed, broken[0]
    lines = [f"seed {seed} breaks {len(broken)} times, first:", *map(str, broken[:5]), ""]
    script = outcome.script
    if shortened:
        script = shrink(script, first.rule)
        lines.append(f"{len(script.steps)} of {len(outcome.script.steps)} steps break it, too:")
        lines += map(str, script.steps)
        outcome = play(script)
        again = [one for one in judge(outcome.history.events) if one.rule == first.rule]
        first = again[0] if again else first
    near = [
        event
        for event in outcome.history.events
        if first.at_ms - 120_000 <= event.at_ms <= first.at_ms
        and event.kind not in ("written", "silence", "counted")
    ]
    lines += ["", f"what happened before {first}:", *(str(event)[:400] for event in near[-40:])]
    lines += ["", f"again: python -m tests.simulation.whole --seed {seed}"]
    return "\n".join(lines)
