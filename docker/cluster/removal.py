# SPDX-License-Identifier: Apache-2.0
"""Removes clusters: what carries the label of one, in the order in which the engine lets it go.

Containers first, then volumes, then the network. The engine may keep a network for containers that
are gone ("has active endpoints"), so each step is tried a few times and what remains is named.
"""

import json
import time
from dataclasses import dataclass

from cluster.daemons import LABEL, hosts
from cluster.engine import Trouble, call, say

TRIES = 4
PAUSE_S = 0.5
"""Before the second try; twice as long before each later one."""

CGROUPS = "/sys/fs/cgroup:/sys/fs/cgroup:rw"
CGROUPS_LABEL = "schedbridge.cgroups"
CGROUP_KINDS = ("freezer", "memory", "cpuset", "cpu", "cpuacct", "devices")


@dataclass(frozen=True)
class Left:
    """What remains of a cluster, by name, and what the engine said of it."""

    containers: tuple[str, ...]
    volumes: tuple[str, ...]
    networks: tuple[str, ...]
    said: str = ""

    def __bool__(self) -> bool:
        return bool(self.containers or self.volumes or self.networks)

    def trouble(self, name: str) -> Trouble:
        """Names it all, and how to mend it."""
        names = [f"container {one}" for one in self.containers]
        names += [f"volume {one}" for one in self.volumes]
        for network in self.networks:
            on_it = ", ".join(endpoints(network))
            names.append(f"network {network}" + (f" (with endpoints of {on_it})" if on_it else ""))
        return Trouble(
            f"the Docker engine does not remove {', '.join(names)}. Restart the engine "
            f"(systemctl restart docker), then: scripts/cluster down --name {name}",
            self.said,
        )


def down(name: str) -> None:
    """Removes all that carries the cluster's label; nothing to remove is no error.

    Raises:
        Trouble: something remains; says what, and how to mend it.
    """
    if left := remove(name):
        raise left.trouble(name)


def down_all() -> None:
    """Removes every cluster of this machine; one that cannot be removed stops no other.

    Raises:
        Trouble: something remains.
    """
    bad = []
    for name in all_names():
        try:
            down(name)
        except Trouble as trouble:
            say(f"{name}: {trouble}")
            bad.append(name)
    if bad:
        raise Trouble(f"not all is removed of: {', '.join(bad)}")


def remove(name: str) -> Left:
    """Removes what can be removed, and returns what remains."""
    sharing = call("ps", "-a", *_of(name), "--filter", f"label={CGROUPS_LABEL}",
                   "--format", "{{.Image}}").stdout.split()  # fmt: skip
    nodes = range(1, 1 + max((last for _, last in hosts(name).values()), default=0))
    left = _remove_once(name)
    for tries in range(TRIES - 1):
        if not left:
            break
        time.sleep(PAUSE_S * 2**tries)
        left = _remove_once(name)
    if sharing and not left.containers:
        # With their processes gone, the jobs' cgroups are empty directories of the host.
        folders = [f"/sys/fs/cgroup/{kind}/slurm_n{n}" for kind in CGROUP_KINDS for n in nodes]
        empty = ("find", *folders, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")
        call("run", "--rm", "--volume", CGROUPS, sharing[0], *empty, check=False)
    return left


def _remove_once(name: str) -> Left:
    said = []
    if containers := _containers(name):
        said.append(call("rm", "--force", "--volumes", *containers, check=False).stderr)
    if volumes := _found("volume", name):
        said.append(call("volume", "rm", *volumes, check=False).stderr)
    containers, networks = _containers(name), _found("network", name)
    for network in networks if not containers else ():
        for endpoint in endpoints(network):  # of containers that are gone
            call("network", "disconnect", "--force", network, endpoint, check=False)
        said.append(call("network", "rm", network, check=False).stderr)
    return Left(containers, _found("volume", name), _found("network", name), "".join(said).rstrip())


def clear_for_up(name: str) -> bool:
    """Removes what a broken `up` may have left; true if an empty network stays, which can be used.

    Raises:
        Trouble: something else remains, or the network belongs to another program.
    """
    left = remove(name)
    if left.networks == (name,) and not (left.containers or left.volumes or endpoints(name)):
        return True
    if left:
        raise left.trouble(name)
    if not call("network", "inspect", name, check=False).returncode:
        raise Trouble(
            f"there is a network '{name}' that no cluster made: give another --name, or remove it: "
            f"docker network rm {name}"
        )
    return False


def endpoints(network: str) -> list[str]:
    """Names of containers that the engine says are on a network, also of those that are gone."""
    said = call("network", "inspect", network, "--format", "{{json .Containers}}", check=False)
    try:
        listed = json.loads(said.stdout) or {}
    except ValueError:  # the network is gone
        return []
    return sorted(one.get("Name") or key for key, one in listed.items())


def all_names() -> list[str]:
    """Names of all clusters of which there is something."""
    shape = f'{{{{.Label "{LABEL}"}}}}'
    found: set[str] = set()
    for kind in (("ps", "-a"), ("network", "ls"), ("volume", "ls")):
        out = call(*kind, "--filter", f"label={LABEL}", "--format", shape).stdout
        found |= set(out.split())
    return sorted(found)


def _of(name: str) -> tuple[str, str]:
    return "--filter", f"label={LABEL}={name}"


def _containers(name: str) -> tuple[str, ...]:
    return tuple(call("ps", "-a", *_of(name), "--format", "{{.Names}}").stdout.split())


def _found(kind: str, name: str) -> tuple[str, ...]:
    return tuple(call(kind, "ls", *_of(name), "--format", "{{.Name}}").stdout.split())
