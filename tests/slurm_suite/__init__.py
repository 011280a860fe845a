# SPDX-License-Identifier: Apache-2.0
"""Slurm's own test suite, its part on scheduling, on a stock and on a bridged Slurm.

    chosen.yaml   the tests that are run, in our words, and those left out, with the reason
    choice        reads it
    changes       what is changed in the tests themselves, and why
    site          the two clusters: one slurm.conf but for the scheduler
    stand         one cluster in one container: the tests restart daemons and rewrite files
    run           runs a test on both, and again if they differ
    table         docs/results/slurm-suite.md

Nothing of the suite is kept in this repository: the image `schedbridge/suite` takes it from the
source package of the Slurm it runs. `scripts/test slurm-suite --help`.
"""

import sys
from pathlib import Path

_DOCKER = str(Path(__file__).parents[2] / "docker")
if _DOCKER not in sys.path:
    sys.path.insert(0, _DOCKER)  # where `cluster` is
