# SPDX-License-Identifier: Apache-2.0
"""How much worse the learner of `asax` does than the best of its experts in hindsight.

Usage: benchmarks/coscheduling_regret.py [--environments N] [--decisions N] [--seed N] [--json FILE]
       benchmarks/coscheduling_regret.py --show FILE

An environment is a sequence of hosts, and the loss of each quota on each of them. The learner is
told the loss of the quota that it chose, and no other. Kinds of environments:

    steady        losses depend on the host and the quota, with noise
    drifting      the same, but what a quota costs wanders
    switching     what is harmless becomes harmful, and back, every 50 decisions
    adversarial   the quota that the learner is most likely to choose costs 1, all others nothing

Two things are measured, a decision:

    excess risk   of the mixture over the best expert, by the losses of the chosen quotas, and the
                  bound of the paper's theorem on it (rule 4 of `bridge.extensions.sharing.learner`)
    regret        the expected loss of the mixture less that of the best expert, by the losses of
                  all quotas: the theorem says nothing about it

`importance-weighted` divides the risk of a choice by its probability, at least 0.02, as EXP4 does:
an unbiased estimate, for comparison.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from about import about
from numpy.typing import NDArray
from results_file import write

from bridge.extensions.sharing.experts import QUOTAS_PERCENT, Expert, default_experts
from bridge.extensions.sharing.learner import Choice, Learner
from bridge.extensions.sharing.observation import FEATURES, Observation

KINDS = ("steady", "drifting", "switching", "adversarial")
LEARNERS = ("asax", "importance-weighted")
_LEAST_PROBABILITY = 0.02
_SWITCH_EVERY = 50
_NOISE = 0.1
_DRIFT = 0.05

Losses = Callable[[int, Observation, NDArray[np.float64]], NDArray[np.float64]]
"""Number of the decision, host, and the mixture, to the loss of each quota."""


def losses(kind: str, rng: np.random.Generator) -> Losses:
    """The losses of one environment; no guest costs nothing, except in `switching`."""
    sensitive = rng.uniform(0, 1, 2)  # to CPUs in use, and to memory in use
    level = rng.uniform(0.2, 1.2)
    offset = np.zeros(len(QUOTAS_PERCENT))
    quota = np.array(QUOTAS_PERCENT) / 100

    def harm(host: Observation) -> NDArray[np.float64]:
        pressure = sensitive @ (host.cpu_percent / 100, host.memory_percent / 100)
        expected = level * quota * pressure * 2 + rng.normal(0, _NOISE, len(quota)) * (quota > 0)
        return np.asarray(expected)

    def steady(_: int, host: Observation, __: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(harm(host), 0, 1)

    def drifting(_: int, host: Observation, __: NDArray[np.float64]) -> NDArray[np.float64]:
        offset[1:] = np.clip(offset[1:] + rng.normal(0, _DRIFT, len(quota) - 1), -1, 1)
        return np.clip(harm(host) + offset, 0, 1)

    def switching(t: int, host: Observation, __: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.clip(harm(host), 0, 1)
        return found if t // _SWITCH_EVERY % 2 == 0 else 1 - found

    def adversarial(_: int, __: Observation, mixture: NDArray[np.float64]) -> NDArray[np.float64]:
        return (np.arange(len(quota)) == mixture.argmax()).astype(np.float64)

    return {"steady": steady, "drifting": drifting, "switching": switching,
            "adversarial": adversarial}[kind]  # fmt: skip


def run(
    experts: Sequence[Expert], kind: str, learner_name: str, decisions: int, seed: int
) -> dict[str, float]:
    """One environment; all figures a decision."""
    rng = np.random.default_rng(seed)
    loss_of = losses(kind, rng)
    low, high = np.array(list(FEATURES.values())).T
    high[-1] = 2.0  # hosts are about as fast as they must be
    learner = Learner.new(len(experts))
    mixture_loss, expert_loss = 0.0, np.zeros(len(experts))
    for t in range(decisions):
        host = Observation(*rng.uniform(low, high))
        host = replace(host, parallel=float(rng.random() < 0.5))
        advice = np.array([expert.advise(host) for expert in experts])
        mixture = learner.weights() @ advice
        loss = loss_of(t, host, mixture)
        mixture_loss += float(mixture @ loss)
        expert_loss += advice @ loss
        action = int(rng.choice(len(mixture), p=mixture / mixture.sum()))
        told = advice[:, action]
        if learner_name == "importance-weighted":
            told = np.minimum(told / max(mixture[action], _LEAST_PROBABILITY), 1.0)
        learner = learner.told(Choice(QUOTAS_PERCENT[action], told), float(loss[action]))
    return {
        "loss": mixture_loss / decisions,
        "best_expert_loss": float(expert_loss.min()) / decisions,
        "regret": (mixture_loss - float(expert_loss.min())) / decisions,
        "excess_risk": learner.excess_risk() / decisions,
        "bound": learner.bound() / decisions,
    }


def summary(kind: str, learner: str, runs: Sequence[dict[str, float]]) -> dict[str, object]:
    """Means over environments, and the most that was seen of what is bounded."""
    means = {name: round(float(np.mean([run[name] for run in runs])), 4) for name in runs[0]}
    return {
        "kind": kind,
        "learner": learner,
        "environments": len(runs),
        **means,
        "most_excess_risk": round(max(run["excess_risk"] for run in runs), 4),
        "beyond_the_bound": sum(run["excess_risk"] > run["bound"] for run in runs),
    }


def show(result: dict[str, list[dict[str, object]]]) -> str:
    """The rows of the table in the documents."""
    names = ("loss", "best_expert_loss", "regret", "excess_risk", "most_excess_risk", "bound")
    rows = [
        "| environments | learner | number | loss | best expert's | regret | excess risk: mean "
        "| most | bound | beyond it |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in result["runs"]:
        cells = [f"{row[name]:.3f}" for name in names]
        rows.append(
            f"| {row['kind']} | {row['learner']} | {row['environments']:,} | "
            + " | ".join(cells) + f" | {row['beyond_the_bound']} |"
        )  # fmt: skip
    return "\n".join(rows)


def main() -> None:
    """Measures, or shows a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=1000, help="of all kinds [1000]")
    parser.add_argument("--decisions", type=int, default=500, help="in each [500]")
    parser.add_argument("--seed", type=int, default=0, help="of the first [0]")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="show these figures")
    options = parser.parse_args()
    if options.show:
        print(show(json.loads(options.show.read_text())))
        return
    if options.environments < len(KINDS) or options.decisions < 1:
        parser.error(f"--environments is at least {len(KINDS)}, --decisions at least 1")
    experts, rows = default_experts(), []
    each = options.environments // len(KINDS)
    for kind in KINDS:
        for learner in LEARNERS:
            found = [
                run(experts, kind, learner, options.decisions, options.seed + number)
                for number in range(each)
            ]
            rows.append(summary(kind, learner, found))
            print(f"{kind}, {learner}: done", file=sys.stderr)
    result = {**about(), "decisions": options.decisions, "runs": rows}
    print(show(result))
    if options.json:
        write(options.json, result)


if __name__ == "__main__":
    main()
