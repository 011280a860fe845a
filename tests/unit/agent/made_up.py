# SPDX-License-Identifier: Apache-2.0
"""Processes of a made-up /proc."""

from pathlib import Path


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
