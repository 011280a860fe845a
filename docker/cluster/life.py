# SPDX-License-Identifier: Apache-2.0
"""A cluster from up to the shell on it; `removal` takes it down.

`up`: 1. network and containers, which run nothing yet, so that every name resolves; 2. the
configuration, on a volume that all of them share; 3. munge everywhere; 4. slurmdbd and its
users; 5. slurmds, service and slurmctld; 6. wait until Slurm itself calls all nodes idle.

Nothing is kept outside Docker: what belongs to a cluster carries its label.
"""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cluster import certificates, images
from cluster.daemons import LABEL, NODES_LABEL, Daemon, find, hosts, restart
from cluster.engine import Trouble, become, call, wait_for
from cluster.removal import CGROUPS, CGROUPS_LABEL, clear_for_up
from cluster.site import SCHEDULERS, SLURM_CONF, Site, archive, scheduler_conf

USERS = ("user", "alice", "bob")
ACCOUNT = "everyone"
SERVICE_CONFIG = SLURM_CONF / "bridge.yaml"
MOST_RESTARTED = 20  # slurmds while a cluster comes up: more missing have another cause
# Volumes, and which containers see them ("*": all).
VOLUMES = {
    "etc": ("/etc/slurm", "*"),
    "home": ("/home", "*"),
    "state": ("/var/lib/slurm", ("controller", "login")),
    "controller-socket": ("/run/schedbridge", ("controller", "service")),
    "operator-socket": ("/run/schedbridge-operator", ("controller", "service", "login")),
}


def check_name(name: str) -> str:
    """A name that containers, networks and Slurm take.

    Raises:
        Trouble: it is not one.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]{0,29}", name):
        raise Trouble(f"--name must be 1 to 30 of a-z and 0-9, a letter first, not '{name}'")
    return name


@dataclass(frozen=True)
class _Host:
    """A container to be: its role is its host name, too."""

    role: str
    nodes: range | None = None


def up(site: Site, service_config: Path = SERVICE_CONFIG, image: str = "") -> None:
    """Starts a cluster and returns when all its nodes are idle; `image`: another than its own.

    Raises:
        Trouble: it did not become one; what there is of it stays for a look.
    """
    check_name(site.name)
    if not service_config.is_file():
        raise Trouble(f"--service-config: there is no file '{service_config}'")
    config = _service_config(site, service_config)
    if hosts(site.name):
        raise Trouble(
            f"cluster '{site.name}' is up already: scripts/cluster down --name {site.name}"
        )
    if site.cgroups:
        _need_cgroups()
    image = image or (images.CLUSTER if site.bridge else images.PLAIN)
    if not images.exists(image):
        images.build(*(target for target, known in images.TARGETS.items() if known == image))
    has_network = clear_for_up(site.name)
    _make(site, image, has_network=has_network)
    if site.accounting:
        find(site.name, "dbd").start()
        _accounts(site)
    if site.bridge:
        call(
            "exec", "-i", f"{site.name}-service", "sh", "-c", "cat >/etc/schedbridge/bridge.yaml",
            stdin=config.encode(),
        )  # fmt: skip
    _start(site)
    _wait_idle(site)


def _service_config(site: Site, path: Path) -> str:
    """The service's configuration, with the site's switches.

    Raises:
        Trouble: the file cannot be read, or names switches of its own besides.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"--service-config: {error}") from None
    if site.agents and not re.search(r"^agents:", text, re.MULTILINE):
        text = f"{text.rstrip()}\n{certificates.service_section()}"
    if not (site.topology and site.bridge):
        return text
    path_inside = f"/etc/slurm/{site.topology_file}"
    said = re.search(r"^topology:((?:.*)(?:\n[ \t]+.*)*)\n?", text, re.MULTILINE)
    if said is None or said[1].strip() in ("", "null", "~"):
        head = text if said is None else text[: said.start()] + text[said.end() :]
        return f"{head.rstrip()}\ntopology: {path_inside}\n"
    if not re.search(rf"(?<![\w/.-]){re.escape(path_inside)}(?![\w/.-])", said[1]):
        raise Trouble(f"--topology: the service's configuration names another than {path_inside}")
    return text


def _need_cgroups() -> None:
    """Makes sure that jobs can have cgroups: the host's, named after nodes, so for one cluster.

    Raises:
        Trouble: they cannot.
    """
    if call("info", "--format", "{{.CgroupVersion}}").stdout.strip() != "1":
        raise Trouble("--cgroups works on hosts with cgroup v1 only")
    shape = f'{{{{.Label "{LABEL}"}}}}'
    other = call("ps", "-a", "--filter", f"label={CGROUPS_LABEL}", "--format", shape).stdout.split()
    if other:
        raise Trouble(f"only one cluster can have --cgroups at a time, and '{other[0]}' has them")


def _make(site: Site, image: str, *, has_network: bool) -> None:
    """Network, volumes, containers, configuration, munge."""
    if not has_network:
        call("network", "create", "--label", f"{LABEL}={site.name}", site.name)
    for volume in VOLUMES:
        call("volume", "create", "--label", f"{LABEL}={site.name}", f"{site.name}-{volume}")
    first = _Host("controller")
    others = [_Host("login")]
    others += [_Host("service")] if site.bridge else []
    others += [_Host("dbd")] if site.accounting else []
    others += [_Host(host, numbers) for host, numbers in site.containers().items()]
    _run(site, image, first)  # alone: the first one fills the volumes from the image
    call(
        "exec", "-i", f"{site.name}-controller", "tar", "-x", "-C", "/etc/slurm",
        stdin=archive(site.files(), certificates.make() if site.agents else ()),
    )  # fmt: skip
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda host: _run(site, image, host), others):
            pass
        for _ in pool.map(
            lambda host: call("exec", f"{site.name}-{host.role}", "role", "start", "munge"),
            [first, *others],
        ):
            pass


def _run(site: Site, image: str, host: _Host) -> None:
    role, nodes = host.role, host.nodes
    words = [
        "run", "--detach", "--name", f"{site.name}-{role}", "--hostname", role,
        "--network", site.name, "--network-alias", role, "--label", f"{LABEL}={site.name}",
    ]  # fmt: skip
    for volume, (path, seen_by) in VOLUMES.items():
        if seen_by == "*" or role in seen_by:
            words += ["--volume", f"{site.name}-{volume}:{path}"]
    if nodes is not None:
        words += ["--label", f"{NODES_LABEL}={nodes.start}-{nodes.stop - 1}"]
        if site.agents:  # they read the environment of processes, and raise their priority
            words += ["--cap-add", "SYS_PTRACE", "--cap-add", "SYS_NICE"]
        if site.power_files:  # Docker's own mount of cgroups goes on top
            words += ["--volume", f"{Path(site.power_files).absolute() / role}:/sys"]
            words += ["--volume", "/sys/devices:/sys/devices:ro"]
        if site.cgroups:
            words += ["--volume", CGROUPS, "--label", f"{CGROUPS_LABEL}=yes"]
    if role == "controller":
        words += ["--label", f"schedbridge.bridge={'yes' if site.bridge else 'no'}"]
    call(*words, image)


def _accounts(site: Site) -> None:
    """Registers the cluster and one account for all users."""
    for words in (
        ("add", "cluster", site.name),
        ("add", "account", ACCOUNT, f"Cluster={site.name}"),
        ("add", "user", ",".join(USERS), f"Account={ACCOUNT}"),
    ):
        call("exec", f"{site.name}-dbd", "sacctmgr", "-i", *words)
    if site.accounts:
        call("exec", "-i", f"{site.name}-dbd", "sh", "-es", stdin=site.accounts.encode())


def _start(site: Site) -> None:
    def slurmds(host: str, numbers: range) -> None:
        nodes = [f"n{number}" for number in numbers]
        call("exec", f"{site.name}-{host}", "role", "start", "node", *nodes)
        if site.agents:
            call("exec", f"{site.name}-{host}", "role", "start", "agent", *nodes)

    def deciders() -> None:
        if site.bridge:  # before slurmctld, which would log that nobody answers
            find(site.name, "service").start()
        find(site.name, "controller").start()

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(deciders)]
        work += [pool.submit(slurmds, *item) for item in site.containers().items()]
        for one in work:
            one.result()


def _wait_idle(site: Site) -> None:
    """Waits until Slurm calls every node idle.

    On a busy machine slurmctld defers connections while all nodes register at once, and a slurmd
    whose registration was lost waits for the next ping, minutes later: it is restarted instead.

    Raises:
        Trouble: it does not in time; the detail is what explains it.
    """
    timeout_s = 90 + site.nodes * 0.3
    patience_s = 45 + site.nodes * 0.05

    def idle() -> bool:
        out = call("exec", f"{site.name}-login", "sinfo", "-h", "-p", site.everywhere,
                   "-o", "%D %t", check=False).stdout  # fmt: skip
        return out.split() == [str(site.nodes), "idle"]

    if wait_for(idle, patience_s, pause_s=0.25):
        return
    for node in _not_idle(site)[:MOST_RESTARTED]:
        slurmd = find(site.name, "node", node)
        slurmd.role("end", check=False)
        slurmd.role("start", check=False)
    if wait_for(idle, timeout_s - patience_s, pause_s=0.25):
        return
    bad = _not_idle(site)
    logs = [find(site.name, "controller").tail()]
    logs += [find(site.name, "node", bad[0]).tail()] if bad else []
    raise Trouble(
        f"{len(bad)} of {site.nodes} nodes are not idle after {timeout_s:.0f} s "
        f"({', '.join(bad[:5])}); look around, then: scripts/cluster down --name {site.name}",
        "\n".join(logs),
    )


def _not_idle(site: Site) -> list[str]:
    """The names of nodes that Slurm does not call idle."""
    shown = call("exec", f"{site.name}-login", "sinfo", "-h", "-N", "-p", site.everywhere,
                 "-o", "%N %t", check=False).stdout  # fmt: skip
    states = (line.split() for line in shown.splitlines())
    return [node for node, state in states if state != "idle"]


def switch(name: str, scheduler: str) -> None:
    """Gives a running cluster another scheduler: its slurmctld starts again.

    Raises:
        Trouble: it cannot be had.
    """
    if scheduler not in SCHEDULERS:
        raise Trouble(f"unknown scheduler '{scheduler}': there are {', '.join(SCHEDULERS)}")
    controller = find(name, "controller")
    shape = '{{index .Config.Labels "schedbridge.bridge"}}'
    if scheduler == "bridge" and call(
        "inspect", "--format", shape, controller.container
    ).stdout.strip() != "yes":  # fmt: skip
        raise Trouble(f"cluster '{name}' was started with --no-bridge")
    call(
        "exec", "-i", controller.container, "sh", "-c", "cat >/etc/slurm/scheduler.conf",
        stdin=scheduler_conf(scheduler).encode(),
    )  # fmt: skip
    restart(controller)
    login = f"{name}-login"
    # Nodes that answer have registered again soon; the lost ones need not be waited for.
    wait_for(
        lambda: not call("exec", login, "sinfo", "-h", "-t", "unk", "-o", "%n", check=False).stdout,
        timeout_s=30,
    )


def status(name: str, as_json: bool, memory: bool) -> bool:
    """Prints how a cluster does; true if all its daemons and nodes are well.

    Raises:
        Trouble: there is none.
    """
    find(name, "controller")
    listed = hosts(name)
    daemons = {
        role: find(name, role).answers()
        for role in ("controller", "service", "dbd")
        if f"{name}-{role}" in listed
    }
    nodes: dict[str, int] = {}
    scheduler = ""
    if daemons["controller"]:
        login = f"{name}-login"
        out = call("exec", login, "sinfo", "-h", "-p", "main", "-o", "%t %D", check=False).stdout
        nodes = {state: int(count) for state, count in map(str.split, out.splitlines())}
        shown = call("exec", login, "scontrol", "show", "config", check=False).stdout
        found = re.search(r"^SchedulerType\s*=\s*(\S+)", shown, re.MULTILINE)
        scheduler = found[1] if found else ""
    memory_mib = _memory_mib(list(listed)) if memory else None
    if as_json:
        print(json.dumps({
            "name": name, "scheduler": scheduler, "daemons": daemons, "nodes": nodes,
            "containers": sorted(listed), "memory_mib": memory_mib,
        }))  # fmt: skip
    else:
        print(f"cluster {name}: {scheduler or 'no scheduler'}, {len(listed)} containers")
        for role, well in daemons.items():
            print(f"  {role:<11}{'answers' if well else 'DOES NOT ANSWER'}")
        shown = ", ".join(f"{count} {state}" for state, count in sorted(nodes.items()))
        print(f"  {'nodes':<11}{shown or 'unknown'}")
        if memory:
            print(f"  {'memory':<11}{memory_mib} MiB")
    bad = {"down", "drain", "drng", "fail", "unk"}
    return all(daemons.values()) and not any(state.rstrip("*") in bad or state.endswith("*")
                                             for state in nodes)  # fmt: skip


def _memory_mib(containers: list[str]) -> int:
    """What the processes of these containers use, caches left out as docker counts it."""
    units = {"B": 2**-20, "KiB": 2**-10, "MiB": 1.0, "GiB": 1024.0}
    out = call("stats", "--no-stream", "--format", "{{.MemUsage}}", *containers).stdout
    total = 0.0
    for line in out.splitlines():
        found = re.match(r"([\d.]+)([KMG]?i?B)", line)
        total += float(found[1]) * units.get(found[2], 0) if found else 0
    return round(total)


def shell(name: str, user: str, command: list[str], tty: bool) -> None:
    """Becomes a command on the login side; without one, an interactive shell.

    Raises:
        Trouble: there is no such cluster or user.
    """
    login: Daemon = find(name, "controller")
    if user not in (*USERS, "root", "slurm"):
        raise Trouble(f"unknown user '{user}': there are {', '.join((*USERS, 'root', 'slurm'))}")
    home = f"/home/{user}" if user in USERS else "/root" if user == "root" else "/tmp"
    become(
        "exec", "-i", *(["-t"] if tty else []), "--user", user, "--workdir", home,
        "--env", f"USER={user}", "--env", f"LOGNAME={user}",
        login.container.removesuffix("controller") + "login", *(command or ["bash", "-l"]),
    )  # fmt: skip
