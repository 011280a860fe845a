# SPDX-License-Identifier: Apache-2.0
"""Maps a cgroup of v1, as named in /proc, to its directory.

In a container the two may differ: the mounted hierarchy may begin below, or above, the root that
/proc shows.
"""

from pathlib import Path, PurePosixPath


def cgroup_of(pid: int, hierarchy: Path, proc: Path = Path("/proc")) -> Path:
    """The directory of the cgroup `cpu` of a process; that of the hierarchy if it is not shown.

    Raises:
        OSError: the process has ended.
    """
    named = _named(pid, proc)
    for base in (_mounted(hierarchy, proc), "/"):
        try:
            below = PurePosixPath(named).relative_to(base)
        except ValueError:
            continue
        found = hierarchy / below
        if ".." not in below.parts and found.is_dir():
            return found
    return hierarchy


def _named(pid: int, proc: Path) -> str:
    for line in (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            return path
    return "/"


def _mounted(hierarchy: Path, proc: Path) -> str:
    """Which cgroup is mounted there."""
    try:
        text = (proc / "self" / "mountinfo").read_text(errors="replace")
    except OSError:
        return "/"
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) > 4 and words[4] == str(hierarchy):
            return words[3]
    return "/"
