# SPDX-License-Identifier: Apache-2.0
"""A cell of an experiment: one simulation, and everything that determines its result.

The key of a cell names its result. Cells with the same key have the same result; a change of the
policy, the trace, the perturbation, a setting, or the version of the program changes the key.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final, Self

FORMAT: Final = 1
"""Version of what a result holds; part of the key."""

UNPERTURBED: Final = "none"
"""Name of the perturbation that changes nothing."""

_NOT_IN_KEY: Final = frozenset({"trace_path"})


@dataclass(frozen=True)
class Cell:
    """One simulation.

    Attributes:
        policy: its name in the experiment, without the predictor.
        policy_text: the whole policy, with its predictor, as JSON that
            `bridge.registry.parse_policy` reads back.
        predictor: name of its predictor of run times.
        trace_sha256: SHA-256 of the file, hexadecimal.
        seed: the seed of all chance: the perturbation's and the policy's.
        perturbation: its name; `UNPERTURBED`: the trace as it is.
        parameters: what the perturbation does (`bridge.lab.experiments.perturb`).
        engine: that is asked for: auto, cycle, fast.
        setting: further values that determine the result: which jobs, the machine, the site's
            rules. Plain JSON values.
        commit: the commit of schedbridge (`bridge.lab.experiments.provenance`).
        trace_path: where the trace is read; not in the key.
    """

    policy: str
    policy_text: str
    predictor: str
    trace: str
    trace_sha256: str
    seed: int
    perturbation: str = UNPERTURBED
    parameters: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "auto"
    setting: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    commit: str = ""
    trace_path: str = ""

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that determines the result; 64 hexadecimal digits."""
        told = {name: value for name, value in self.plain().items() if name not in _NOT_IN_KEY}
        return hashlib.sha256(canonical({"format": FORMAT, **told}).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The cell in words, for people."""
        named = f"{self.policy}, {self.predictor}, {self.trace}, seed {self.seed}"
        return named if self.perturbation == UNPERTURBED else f"{named}, {self.perturbation}"

    @property
    def pairing(self) -> tuple[str, str, int, str]:
        """What cells must share to be compared job by job: trace, its SHA-256, seed, perturbation.

        They also share `setting` in one experiment.
        """
        return self.trace, self.trace_sha256, self.seed, self.perturbation

    def plain(self) -> dict[str, Any]:
        """All attributes as JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `plain`.

        Raises:
            TypeError: an attribute is unknown or missing.
        """
        return cls(**values)


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
