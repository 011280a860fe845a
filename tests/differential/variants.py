# SPDX-License-Identifier: Apache-2.0
"""Other configurations of the two clusters, on which some of the cases are run, too."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Variant:
    """What differs from the clusters on which every case is run.

    Attributes:
        title: follows the topics of its cases.
        settings: of slurm.conf, instead of those with the same keys.
        planning: the section of the service's configuration.
        gres: nodes have generic resources. With select/linear, slurmctld 24.11 crashes when a job
            gets nodes with typed and with untyped GPUs.
    """

    title: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    planning: str = ""
    gres: bool = True


_POOL = """planning:
  free_pools:
    - {name: spare, nodes: {names: [n16]}, access: [{partitions: [big]}]}
"""
VARIANTS = {
    "plain": Variant(),
    "pool": Variant("with a FreePool", planning=_POOL),
    "cpus": Variant("CR_CPU", {"SelectTypeParameters": "CR_CPU"}),
    "linear": Variant(
        "select/linear",
        {
            "SelectType": "select/linear",
            "SelectTypeParameters": "CR_Memory",
            "GresTypes": "gpu,bandwidth,scratch",
        },
        gres=False,
    ),
}
"""The pool's node is one that the cases of this variant do not use."""
