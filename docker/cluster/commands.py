# SPDX-License-Identifier: Apache-2.0
"""The command line of `scripts/cluster`."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cluster import daemons, images, life, removal
from cluster.engine import Trouble, need_engine, say
from cluster.site import SCHEDULERS, Site
from cluster.switches import READERS

Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the command line."""

    def error(self, message: str) -> NoReturn:
        raise Trouble(f"{message} (try: {self.prog} --help)")


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    # What follows the first -- is the user's own command, whatever it looks like.
    cut = words.index("--") if "--" in words else len(words)
    try:
        given = _parser().parse_args(words[:cut])
        given.command = words[cut + 1 :]
        if given.command and given.verb != "shell":
            raise Trouble(f"{given.verb} takes no command")
        need_engine(start=given.verb in ("up", "build"))
        if "name" in given:
            life.check_name(given.name)
        run: Command = given.run
        return run(given)
    except Trouble as trouble:
        if trouble.detail:
            print(trouble.detail, file=sys.stderr)
        say(str(trouble))
        return 1
    except KeyboardInterrupt:
        say("interrupted; what was started stays until: scripts/cluster down")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="scripts/cluster", description="A dockerized Slurm cluster.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, run: Command, text: str, named: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        if named:
            added.add_argument("--name", default=Site.name, help="which cluster [%(default)s]")
        return added

    build = verb("build", _build, "rebuild the images from this checkout", named=False)
    build.add_argument("--only", choices=sorted(images.TARGETS), help="just this one")
    _up_options(verb("up", _up, "start a cluster; returns when all nodes are idle"))
    down = verb("down", _down, "remove a cluster and everything it left")
    down.add_argument("--all", action="store_true", help="every cluster of this machine")
    down.add_argument("--images", action="store_true", help="the images, too")
    status = verb("status", _status, "show a cluster's state; exit code 1 if something is wrong")
    status.add_argument("--json", action="store_true", help="as one JSON object")
    status.add_argument("--memory", action="store_true", help="and what it uses (takes seconds)")
    shell = verb("shell", _shell, "run a command on the login side: shell [--user U] -- COMMAND")
    shell.add_argument("--user", default="user", help="user, alice, bob, root or slurm [user]")
    shell.add_argument("stray", nargs="*", help=argparse.SUPPRESS)
    logs = verb("logs", _logs, "show a daemon's log")
    logs.add_argument("daemon", nargs="?", default="controller", help="|".join(daemons.DAEMONS))
    logs.add_argument("node", nargs="?", help="which node")
    logs.add_argument("--tail", type=int, metavar="N", help="the last lines only")
    logs.add_argument("--follow", action="store_true", help="and what comes")
    for name, run, text in (
        ("kill", _signal, "SIGKILL a daemon; its container stays"),
        ("stop", _signal, "SIGSTOP a daemon"),
        ("cont", _signal, "SIGCONT a daemon"),
        ("restart", _restart, "stop a daemon if it runs, start it, wait until it answers"),
    ):
        added = verb(name, run, text)
        added.add_argument("daemon", help="|".join(daemons.DAEMONS))
        added.add_argument("node", nargs="?", help="which node")
    switch = verb("switch", _switch, "switch to another scheduler; restarts slurmctld")
    switch.add_argument("scheduler", help="|".join(SCHEDULERS))
    return parser


def _up_options(up: argparse.ArgumentParser) -> None:
    add = up.add_argument
    add("--nodes", type=int, default=Site.nodes, metavar="N", help="how many [%(default)s]")
    add("--containers", type=int, default=Site.own, metavar="K",
        help="nodes with a container of their own; the others share [%(default)s]")  # fmt: skip
    add("--packed", action="store_const", const=0, dest="containers", help="= --containers 0")
    add("--cpus", type=int, default=Site.cpus, metavar="N", help="of each node [%(default)s]")
    add("--memory-mib", type=int, default=Site.memory_mib, metavar="MIB",
        help="of each node [%(default)s]")  # fmt: skip
    add("--gres", default=Site.gres, help="generic resources of each node, e.g. gpu:2")
    add("--licenses", default=Site.licenses, help="of the cluster [%(default)s]")
    add("--topology", default=Site.topology, metavar="tree|FILE",
        help="switches above the nodes: a fat tree of 8-port switches (more ports if need be), its "
        "pods pruned to the nodes there are, or this topology.conf; Slurm has its plugin "
        "topology/tree (of blocks: topology/block), the service reads the same [none]")  # fmt: skip
    add("--topology-for", choices=READERS, default=Site.topology_for,
        help="bridge: the service alone knows the switches, Slurm keeps topology/default "
        "[%(default)s]")  # fmt: skip
    add("--accounting", action="store_true", help="with slurmdbd and MariaDB")
    add("--power-files", default="", metavar="DIR",
        help="DIR/n1 is the /sys of node n1, and so on: a model may write power and energy into "
             "its cray/pm_counters [none]")  # fmt: skip
    add("--agents", action="store_true",
        help="with an agent on every node: running jobs can grow and shrink")  # fmt: skip
    add("--cgroups", action="store_true", help="jobs in cgroups of their own (v1 hosts)")
    add("--scheduler", choices=SCHEDULERS, help="who schedules [bridge]")
    add("--image", choices=sorted(images.TARGETS), default="",
        help="another image than the default; mpi has compilers and three MPIs")  # fmt: skip
    add("--no-bridge", action="store_true", help="plain Slurm: no service, no plugins")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="extra",
        help="one more line of slurm.conf; can be repeated")  # fmt: skip
    add("--service-config", type=Path, default=life.SERVICE_CONFIG, metavar="FILE",
        help="the service's configuration [slurm_conf/bridge.yaml]")  # fmt: skip


def _build(given: argparse.Namespace) -> int:
    images.build(*([given.only] if given.only else ["plain", "build", "cluster"]))
    return 0


def _up(given: argparse.Namespace) -> int:
    site = Site(
        name=given.name, nodes=given.nodes, own=given.containers, cpus=given.cpus,
        memory_mib=given.memory_mib, gres=given.gres, licenses=given.licenses,
        scheduler=given.scheduler or ("backfill" if given.no_bridge else "bridge"),
        bridge=not given.no_bridge, accounting=given.accounting, cgroups=given.cgroups,
        agents=given.agents, power_files=given.power_files, topology=given.topology,
        topology_for=given.topology_for, extra=tuple(given.extra),
    )  # fmt: skip
    life.up(site, given.service_config, images.TARGETS.get(given.image, ""))
    return 0


def _down(given: argparse.Namespace) -> int:
    if given.all:
        removal.down_all()
    else:
        removal.down(given.name)
    if given.images:
        images.remove()
    return 0


def _status(given: argparse.Namespace) -> int:
    return 0 if life.status(given.name, given.json, given.memory) else 1


def _shell(given: argparse.Namespace) -> int:
    if given.stray:
        raise Trouble(f"put -- before the command: shell -- {' '.join(given.stray)}")
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    life.shell(given.name, given.user, given.command, tty)
    return 0


def _logs(given: argparse.Namespace) -> int:
    daemon = daemons.find(given.name, given.daemon, given.node)
    daemons.show_log(daemon, given.tail, given.follow)
    return 0


def _signal(given: argparse.Namespace) -> int:
    daemon = daemons.find(given.name, given.daemon, given.node)
    daemon.role("signal", daemons.SIGNALS[given.verb])
    return 0


def _restart(given: argparse.Namespace) -> int:
    daemons.restart(daemons.find(given.name, given.daemon, given.node))
    return 0


def _switch(given: argparse.Namespace) -> int:
    life.switch(given.name, given.scheduler)
    return 0
