# SPDX-License-Identifier: Apache-2.0
"""Parses command lines with the programs of Slurm, in a container without any daemon.

A program reads its options one after the other; `--help` after them ends it with success, so that
nothing is submitted or shown. Words in capitals stand for a value, and the last option may be
without its own.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable

PROGRAMS = ("sbatch", "srun", "salloc", "squeue", "sinfo", "scancel")
"""Programs whose options are read before anything else is done. sacct needs a database first."""
_IMAGE = f"{os.environ.get('SCHEDBRIDGE_IMAGES', 'schedbridge')}/cluster"
_BEGIN = """mkdir -p /etc/slurm
printf '%s\\n' ClusterName=c SlurmctldHost=localhost NodeName=n1 'PartitionName=p Nodes=n1' \\
    > /etc/slurm/slurm.conf
"""
_TRY = "said=$({one} 2>&1 >/dev/null) || {two} >/dev/null 2>&1 || echo {text}: $said\n"


def problems(texts: Iterable[str]) -> list[str]:
    """What is wrong with command lines, a line for each that does not parse."""
    script = _BEGIN
    for text in texts:
        line = re.sub(r"(?<=[=@:, ])[A-Z]+(?=$|[=@:, ])", "1", text)
        one, two = f"{line} --help", f"{line} 1 --help" if "-" in line.split()[-1] else "false"
        script += _TRY.format(one=one, two=two, text=shlex.quote(text))
    done = subprocess.run(
        ["docker", "run", "--rm", "-i", "--network", "none", "--entrypoint", "sh", _IMAGE],
        input=script, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.splitlines()
