# SPDX-License-Identifier: Apache-2.0
"""What happens to single daemons of a cluster: signals, restarts, logs.

The daemons are `controller` (slurmctld), `service`, `dbd` (slurmdbd), `node` (a slurmd, by its
node's name) and `agent` (of a node, by its name). Their containers stay when they die.
"""

from dataclasses import dataclass

from cluster.engine import Trouble, become, call, wait_for

LABEL = "schedbridge.cluster"
NODES_LABEL = "schedbridge.nodes"
DAEMONS = ("controller", "service", "node", "agent", "dbd")
SIGNALS = {"kill": "KILL", "stop": "STOP", "cont": "CONT"}
OPERATOR_SOCKET = "/run/schedbridge-operator/operator.sock"
KNOCK = f"import socket; socket.socket(socket.AF_UNIX).connect('{OPERATOR_SOCKET}')"


@dataclass(frozen=True)
class Daemon:
    """One daemon: the container it lives in, and what `role` calls it."""

    cluster: str
    container: str
    words: tuple[str, ...]

    def role(self, verb: str, *before: str, check: bool = True) -> bool:
        """Runs `role VERB` on it; true if that succeeded.

        Raises:
            Trouble: it did not, and `check`.
        """
        done = call("exec", self.container, "role", verb, *before, *self.words, check=False)
        if check and done.returncode != 0:
            errors = [line.removeprefix("role: ") for line in done.stderr.splitlines()]
            errors = errors or ["failed"]
            raise Trouble(f"{verb} {' '.join(self.words)}: {errors[-1]}", self.tail())
        return done.returncode == 0

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        path = call("exec", self.container, "role", "log", *self.words, check=False).stdout.strip()
        text = call("exec", self.container, "tail", "-n", str(lines), path, check=False).stdout
        return f"--- {path} in {self.container}\n{text.rstrip()}" if text else ""

    def answers(self) -> bool:
        """Does it do its work?"""
        probe: tuple[str, ...]
        match self.words[0]:
            case "controller":
                probe = ("scontrol", "ping")
            case "service":
                probe = ("python", "-P", "-c", KNOCK)
            case "dbd":
                probe = ("sacctmgr", "-n", "show", "cluster")
            case _:
                return self.role("alive", check=False)
        done = call("exec", self.container, *probe, check=False)
        return done.returncode == 0 and " DOWN" not in done.stdout

    def start(self, timeout_s: float = 60) -> None:
        """Starts it and waits until it answers.

        Raises:
            Trouble: it does not; the detail is the end of its log.
        """
        self.role("start")
        name = " ".join(self.words)
        # A daemon may be seen a moment after its start without a pid file; not so for long.
        dead = 0

        def settled() -> bool:
            nonlocal dead
            dead = 0 if self.role("alive", check=False) else dead + 1
            return dead > 15 or self.answers()

        if not wait_for(settled, timeout_s):
            raise Trouble(f"{name} does not answer after {timeout_s:.0f} s", self.tail())
        if dead:
            raise Trouble(f"{name} ended after its start", self.tail())


def find(cluster: str, daemon: str, node: str | None = None) -> Daemon:
    """Finds a daemon of a running cluster.

    Raises:
        Trouble: there is no such cluster, daemon or node.
    """
    if daemon not in DAEMONS:
        raise Trouble(f"unknown daemon '{daemon}': there are {', '.join(DAEMONS)}")
    of_node = daemon in ("node", "agent")
    if (node is not None) != of_node:
        raise Trouble(f"say which node: {daemon} NAME" if of_node else f"{daemon} has no NAME")
    listed = hosts(cluster)
    if not listed:
        raise Trouble(f"no cluster '{cluster}' is up: scripts/cluster up --name {cluster}")
    if node is None:
        container = f"{cluster}-{daemon}"
        if container not in listed:
            raise Trouble(f"cluster '{cluster}' has no {daemon}")
        return Daemon(cluster, container, (daemon,))
    for container, (first, last) in listed.items():
        if first and node[:1] == "n" and node[1:].isdigit() and first <= int(node[1:]) <= last:
            return Daemon(cluster, container, ("node", node) if daemon == "node" else ("agent",))
    raise Trouble(f"cluster '{cluster}' has no node '{node}'")


def hosts(cluster: str) -> dict[str, tuple[int, int]]:
    """Containers of a cluster; for each the first and the last node it holds, or (0, 0)."""
    shape = f'{{{{.Names}}}} {{{{.Label "{NODES_LABEL}"}}}}'
    out = call("ps", "-a", "--filter", f"label={LABEL}={cluster}", "--format", shape).stdout
    found = {}
    for line in out.splitlines():
        name, _, span = line.partition(" ")
        first, _, last = span.strip().partition("-")
        found[name] = (int(first or 0), int(last or 0))
    return found


def restart(daemon: Daemon) -> None:
    """Stops a daemon if it runs, and starts it."""
    daemon.role("end")
    daemon.start()


def show_log(daemon: Daemon, tail: int | None, follow: bool) -> None:
    """Becomes `tail` on a daemon's log."""
    path = call("exec", daemon.container, "role", "log", *daemon.words).stdout.strip()
    since = "+1" if tail is None else str(tail)
    become("exec", daemon.container, "tail", "-n", since, *(["-F"] if follow else []), path)
