# SPDX-License-Identifier: Apache-2.0
"""Processes of a made-up /proc, and folders of jobs."""

import os
from pathlib import Path

from bridge.agent.job_folders import JobFolders


def in_job(job: int | str, node: str = "n1", uid: int = 1000) -> str:
    """The cgroups of a job's process, as Slurm makes them in version 1."""
    return f"4:freezer:/slurm_{node}/uid_{uid}/job_{job}/step_0\n0::/\n"


def make_process(
    proc: Path, pid: int, uid: int = 1000, *,
    name: str = "a", cgroups: str = "0::/\n", environment: str = "", parent: int = 1,
) -> Path:  # fmt: skip
    """A process of a user; its folder."""
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    status = f"Name:\t{name}\nState:\tS (sleeping)\nPPid:\t{parent}\nUid:\t{uid}\t0\t0\t0\n"
    for file, text in (
        ("status", status), ("cgroup", cgroups), ("environ", environment),
    ):  # fmt: skip
        (folder / file).write_text(text)
    return folder


def make_folders(directory: Path, *jobs: str, uid: int | None = None) -> JobFolders:
    """Folders of jobs, as Slurm makes them, in a directory.

    Args:
        directory: in which other jobs may have theirs.
        jobs: those that get a folder.
        uid: their user; None: the one who runs the test.
    """
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711)
    for job in jobs:
        (directory / job).mkdir(mode=0o700)
        if uid is not None:
            os.chown(directory / job, uid, uid)
    return JobFolders(directory)
