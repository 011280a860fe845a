# SPDX-License-Identifier: Apache-2.0
"""Drives the cycle safely: whatever a policy does, every snapshot gets a legal plan.

Every cycle has a source of chance of its own, drawn from the seed and the snapshot's generation: so
a cycle that was recorded gives its plan again, without the cycles before it.
"""

import dataclasses
import logging

import numpy as np

from bridge.cycle import run_cycle
from bridge.errors import InvalidPlan, PolicyError
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Memory, Policy
from bridge.registry import PRESETS, build

_log = logging.getLogger(__name__)


class Decider:
    """A policy with its memory and its source of chance.

    Attributes:
        policy: may be exchanged between cycles.
        memory: what policies carry over.
        seed: of all chance.
        failures: cycles that fell back to the conservative plan.
    """

    def __init__(self, policy: Policy, memory: Memory | None = None, seed: int = 0) -> None:
        self.policy = policy
        self.memory = memory if memory is not None else Memory()
        self.failures = 0
        self.seed = seed
        self._conservative = build(PRESETS["slurm-like"])

    def decide(self, snapshot: Snapshot) -> Plan:
        """Plans one snapshot; if the policy fails, conservatively, with a note that says so.

        Raises:
            InvalidPlan: even the conservative plan is illegal: the snapshot contradicts itself.
        """
        rng = np.random.default_rng((self.seed, snapshot.generation))
        try:
            return run_cycle(snapshot, self.memory, self.policy, rng)
        except InvalidPlan as error:
            problem: PolicyError = error
        except PolicyError as error:
            problem = error
        except Exception as error:  # a bug in one policy must not stop the cluster
            _log.exception("policy %s failed", self.policy.name)
            problem = PolicyError(self.policy.name, f"{type(error).__name__}: {error}")
        self.failures += 1
        _log.error("%s; this cycle is planned conservatively", problem)
        plan = run_cycle(snapshot, Memory(), self._conservative, rng)
        return dataclasses.replace(plan, notes=(*plan.notes, f"fell back: {problem}"))
