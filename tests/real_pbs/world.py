# SPDX-License-Identifier: Apache-2.0
"""Runs a command in namespaces of its own: network, mounts, processes, host name.

Inside, /etc and /run are private copies, /etc with names of machines and users that exist nowhere
else, and /var/spool is empty. All users may run this Python. When the command ends, everything that
it started ends.

Usage: python -m tests.real_pbs.world COMMAND...
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SERVER = "pbssrv"
MOMS = 8
USERS = {"alice": 20001, "bob": 20002, "carol": 20003, "pbsadm": 20004}
_NET = "10.77.0"


def _sh(*words: str) -> None:
    subprocess.run(words, check=True)


def enter(command: list[str]) -> int:
    """Runs a command inside; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="pbs-world-", dir="/var/lib") as scratch:
        inside = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork",
                  "--mount-proc", "--kill-child", sys.executable, "-m", "tests.real_pbs.world",
                  "--inside", scratch, *command]  # fmt: skip
        return subprocess.run(inside, check=False).returncode


def _prepare(scratch: str) -> None:
    _sh("mount", "--make-rprivate", "/")
    _sh("mount", "-t", "tmpfs", "tmpfs", scratch)
    for folder in ("/etc", "/run"):
        layers = Path(f"{scratch}/layers{folder}")
        for name in ("upper", "work"):
            (layers / name).mkdir(parents=True)
        _sh("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={folder},upperdir={layers}/upper,workdir={layers}/work", folder)  # fmt: skip
    _sh("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/var/spool")
    # Moms make the jobs' TMPDIR there, by job id: another world has the same ids.
    _sh("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/var/tmp")
    _sh("ip", "link", "set", "lo", "up")
    _sh("ip", "link", "add", "pbs0", "type", "veth", "peer", "name", "pbs1")
    lines = ["127.0.0.1 localhost", f"{_NET}.1 {SERVER}"]
    _sh("ip", "addr", "add", f"{_NET}.1/24", "dev", "pbs0")
    for number in range(1, MOMS + 1):
        _sh("ip", "addr", "add", f"{_NET}.{10 + number}/24", "dev", "pbs0")
        lines.append(f"{_NET}.{10 + number} n{number}")
    _sh("ip", "link", "set", "pbs0", "up")
    _sh("ip", "link", "set", "pbs1", "up")
    Path("/etc/hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _sh("hostname", SERVER)
    homes = Path(scratch, "home")
    homes.mkdir(mode=0o755)
    with Path("/etc/passwd").open("a", encoding="utf-8") as users, \
            Path("/etc/group").open("a", encoding="utf-8") as groups:  # fmt: skip
        for name, number in USERS.items():
            home = homes / name
            home.mkdir()
            os.chown(home, number, number)
            users.write(f"{name}:x:{number}:{number}::{home}:/bin/bash\n")
            groups.write(f"{name}:x:{number}:\n")


def _open_python(scratch: str) -> None:
    """Lets users other than root run this Python if it is installed in a closed directory."""
    home = Path(sys.base_prefix).resolve()
    closed = next((one for one in reversed(home.parents) if not one.stat().st_mode & 0o001), None)
    if closed is None:
        return
    kept = Path(scratch, "python")
    kept.mkdir()
    _sh("mount", "--bind", str(home), str(kept))
    _sh("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(closed))
    home.mkdir(parents=True)
    _sh("mount", "--bind", str(kept), str(home))


def _reap(command: list[str]) -> int:
    """Runs a command as process 1 has to: children of others that ended are reaped."""
    child = subprocess.Popen(command)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return child.wait()
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode if child.returncode >= 0 else 128 - child.returncode


def main(arguments: list[str]) -> int:
    """Enters, or runs inside."""
    if arguments[:1] != ["--inside"]:
        return enter(arguments)
    _prepare(arguments[1])
    _open_python(arguments[1])
    return _reap(arguments[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
