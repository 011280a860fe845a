# SPDX-License-Identifier: Apache-2.0
"""scripts/cluster alone, with Slurm's own scheduler: what it promises to those who script it."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.service.config import load

ROOT = Path(__file__).parents[2]
NAME = "sbscripts"
STATE = "/var/lib/slurm/state/job_state"


def script(
    *words: str, name: str | None = NAME, stdin: str = "", program: str = "cluster"
) -> subprocess.CompletedProcess[str]:
    head, tail = (words[: words.index("--")], words[words.index("--") :]) if "--" in words else (
        words, ())  # fmt: skip
    named = () if name is None else ("--name", name)
    return subprocess.run(
        [str(ROOT / "scripts" / program), *head, *named, *tail],
        input=stdin, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def good(*words: str, name: str | None = NAME, stdin: str = "") -> str:
    done = script(*words, name=name, stdin=stdin)
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def shell(*command: str, user: str = "user", name: str = NAME) -> str:
    return good("shell", "--user", user, "--", *command, name=name)


def wait_for(what: str, fact: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not fact():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.1)


def left_of(name: str) -> list[str]:
    """Containers, networks and volumes that carry a cluster's name."""
    listed = []
    for kind, field in (("container", "Names"), ("network", "Name"), ("volume", "Name")):
        everything = ("--all",) if kind == "container" else ()
        shape = f"{{{{.{field}}}}}"
        done = subprocess.run(
            ["docker", kind, "ls", *everything, "--format", shape],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        listed += [one for one in done.stdout.split() if one == name or one.startswith(f"{name}-")]
    return listed


@pytest.fixture(scope="module", autouse=True)
def up() -> Iterator[None]:
    """Six nodes, two of them in containers of their own."""
    good("down")
    good(
        "up", "--no-bridge", "--nodes", "6", "--containers", "2", "--cpus", "2",
        "--memory-mib", "2000", "--gres", "gpu:2,fpga:1", "--licenses", "matlab:2,ansys:1",
    )  # fmt: skip
    # What `up` promises is true the moment it returns.
    assert shell("sinfo", "-h", "-p", "main", "-o", "%D %t") == "6 idle"
    yield
    good("down")
    assert left_of(NAME) == []


# ------------------------------------------------------------------ up, status, down


def test_status_tells_that_all_is_well() -> None:
    said = json.loads(good("status", "--json"))
    assert said["scheduler"] == "sched/backfill"
    assert said["daemons"] == {"controller": True}
    assert said["nodes"] == {"idle": 6}
    assert "6 idle" in good("status")


def test_nodes_have_what_was_asked_for() -> None:
    shown = shell("sinfo", "-h", "-N", "-p", "main", "-o", "%N %c %m %G %f").splitlines()
    assert shown == [
        f"n{n} 2 2000 gpu:2,fpga:1 {'fast' if n <= 3 else 'large'}" for n in range(1, 7)
    ]
    parts = set(shell("sinfo", "-h", "-o", "%P %N").splitlines())
    assert parts == {"main* n[1-6]", "left n[1-4]", "right n[3-6]"}
    assert shell("scontrol", "show", "licenses", "-o").count("LicenseName=") == 2


def test_a_job_runs_on_every_node_and_writes_home() -> None:
    job = shell("sbatch", "--parsable", "--wait", "-N6", "-o", "out.%j", "--wrap",
                "srun sh -c 'echo $SLURMD_NODENAME; touch seen.$SLURMD_NODENAME'")  # fmt: skip
    assert shell("sort", f"out.{job}").split() == [f"n{n}" for n in range(1, 7)]
    assert len(shell("sh", "-c", "ls seen.*").split()) == 6


def test_generic_resources_and_licences_are_given_out() -> None:
    given = shell(
        "srun", "-n1", "--gres=gpu:2,fpga:1", "-L", "ansys:1", "sh", "-c",
        "echo $CUDA_VISIBLE_DEVICES; scontrol show job -o $SLURM_JOB_ID",
    )  # fmt: skip
    assert given.startswith("0,1")
    assert "Licenses=ansys:1" in given
    refused = script("shell", "--", "srun", "-n1", "--gres=gpu:3", "true")
    assert refused.returncode != 0


def test_two_clusters_stand_side_by_side_and_one_goes_without_trace() -> None:
    other = f"{NAME}b"
    good("up", "--no-bridge", "--nodes", "2", "--packed", name=other)
    try:
        assert shell("sinfo", "-h", "-p", "main", "-o", "%D %t", name=other) == "2 idle"
        assert shell("sinfo", "-h", "-p", "main", "-o", "%D %t") == "6 idle"
        assert (
            shell("srun", "-N2", "printenv", "SLURM_CLUSTER_NAME", name=other)
            == f"{other}\n{other}"
        )
        assert left_of(other)
    finally:
        good("down", name=other)
    assert left_of(other) == []
    assert shell("sinfo", "-h", "-p", "main", "-o", "%D %t") == "6 idle"


def test_accounting_keeps_records_and_knows_all_users() -> None:
    other = f"{NAME}c"
    good("up", "--no-bridge", "--nodes", "1", "--accounting", name=other)
    try:
        for user in ("user", "alice", "bob"):
            good("shell", "--user", user, "--", "srun", "-n1", "true", name=other)

        def recorded() -> bool:
            out = shell(
                "sacct", "-a", "-X", "-n", "-P", "-o", "User,State", user="root", name=other
            )
            return sorted(out.split()) == [f"{u}|COMPLETED" for u in ("alice", "bob", "user")]

        wait_for("three records", recorded)
        assert json.loads(good("status", "--json", name=other))["daemons"]["dbd"] is True
        assert "slurmdbd version" in good("logs", "dbd", name=other)
    finally:
        good("down", name=other)


# ------------------------------------------------------------------ shell


def test_shell_passes_input_output_and_exit_code() -> None:
    done = script("shell", "--", "sh", "-c", "cat; echo to-stderr >&2; exit 7", stdin="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "given\n", "to-stderr\n")


@pytest.mark.parametrize("user", ["user", "alice", "bob", "root", "slurm"])
def test_shell_runs_as(user: str) -> None:
    assert shell("id", "-un", user=user) == user
    assert shell("sh", "-c", "echo $USER", user=user) == user


def test_shell_leaves_the_users_own_dashes_alone() -> None:
    assert shell("printf", "%s ", "--name", "x", "--", "y") == "--name x -- y"


# ------------------------------------------------------------------ daemons


def test_a_killed_controller_comes_back_with_its_queue() -> None:
    held = shell("sbatch", "--parsable", "-J", "to-be-kept", "--hold", "--wrap", "true")
    # Slurm writes its state some seconds after a change.
    seen = ("shell", "--user", "root", "--", "grep", "-aq", "to-be-kept", STATE)
    wait_for("the job to be written down", lambda: script(*seen).returncode == 0, 30)
    good("kill", "controller")
    assert script("status").returncode == 1
    good("restart", "controller")
    assert held in shell("squeue", "-h", "-o", "%i").split()
    shell("scancel", held)
    wait_for("nodes to register", lambda: script("status").returncode == 0)


def test_a_stopped_controller_is_silent_and_goes_on() -> None:
    good("stop", "controller")
    done = script("shell", "--", "timeout", "2", "squeue")
    good("cont", "controller")
    assert done.returncode == 124
    shell("squeue")


@pytest.mark.parametrize("node", ["n1", "n6"], ids=["own container", "packed"])
def test_a_node_dies_and_returns(node: str) -> None:
    good("kill", "node", node)
    assert script("kill", "node", node).returncode != 0  # it is dead, and it is said
    good("restart", "node", node)
    wait_for(
        "the node", lambda: shell("sinfo", "-h", "-n", node, "-p", "main", "-o", "%t") == "idle"
    )
    assert shell("srun", "-w", node, "-n1", "printenv", "SLURMD_NODENAME") == node
    assert "slurmd started" in good("logs", "node", node)


def test_the_scheduler_is_switched_on_a_running_cluster() -> None:
    try:
        good("switch", "backfill-tuned")
        wanted = (
            (ROOT / "slurm_conf/backfill-tuned.conf").read_text().split("SchedulerParameters=")[1]
        )
        assert f"= {wanted.split()[0]}\n" in shell("scontrol", "show", "config")
    finally:
        good("switch", "backfill")
    assert "bf_interval" not in shell("scontrol", "show", "config")
    assert shell("sinfo", "-h", "-p", "main", "-o", "%D %t") == "6 idle"
    refused = script("switch", "bridge")
    assert refused.returncode == 1
    assert "--no-bridge" in refused.stderr


# ------------------------------------------------------------------ snippets


def test_the_snippets_are_used_word_for_word() -> None:
    for name in ("bridge.conf", "backfill.conf", "backfill-tuned.conf", "plugstack.conf"):
        used = script("shell", "--", "cat", f"/etc/slurm/schedbridge/{name}").stdout
        assert used == (ROOT / "slurm_conf" / name).read_text()


def test_service_and_plugin_meet_at_the_same_socket() -> None:
    socket = load(ROOT / "slurm_conf/bridge.yaml").controller.socket
    assert f"bridge_socket={socket}," in (ROOT / "slurm_conf/bridge.conf").read_text()
    unit = (ROOT / "slurm_conf/systemd/schedbridge.service").read_text()
    assert f" {socket.parent}\n" in unit


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "VERB"),
        (("frob",), "frob"),
        (("up", "--nodes", "0"), "--nodes must be 1 to 5000, not 0"),
        (("up", "--nodes", "many"), "many"),
        (("up", "--cpus", "-1"), "--cpus"),
        (("up", "--containers", "99"), "--containers"),
        (("up", "--gres", "gpu"), "gpu:2"),
        (("up", "--licenses", "matlab"), "matlab:4"),
        (("up", "--set", "nonsense"), "KEY=VALUE"),
        (("up", "--scheduler", "slurm"), "backfill-tuned"),
        (("up", "--no-bridge", "--scheduler", "bridge"), "contradict"),
        (("up", "--service-config", "/nowhere.yaml"), "/nowhere.yaml"),
        (("up", "--name", "No Name"), "--name must be"),
        (("up", "--no-bridge", "--name", NAME), "is up already"),
        (("shell", "--name", NAME, "squeue"), "put -- before the command"),
        (("shell", "--name", NAME, "--user", "mallory", "--", "true"), "mallory"),
        (("shell", "--name", "nobody", "--", "true"), "no cluster 'nobody' is up"),
        (("status", "--name", "nobody"), "no cluster 'nobody' is up"),
        (("kill", "--name", NAME, "service"), "has no service"),
        (("kill", "--name", NAME, "node"), "say which node"),
        (("kill", "--name", NAME, "node", "n7"), "no node 'n7'"),
        (("kill", "--name", NAME, "everything"), "there are controller, service, node, agent, dbd"),
        (("cont", "--name", NAME, "controller", "n1"), "has no NAME"),
        (("switch", "--name", NAME, "slurm"), "backfill-tuned"),
        (("build", "--", "true"), "takes no command"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, tuple) else "",
)
def test_a_mistake_gets_one_clear_line(words: tuple[str, ...], told: str) -> None:
    done = script(*words, name=None)
    assert done.returncode not in (0, 127)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("cluster: ")
    assert told in lines[0]


@pytest.mark.parametrize("program", ["docker-engine", "base-image"])
def test_the_other_scripts_know_their_arguments(program: str) -> None:
    done = script("--frob", name=None, program=program)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "--frob" in done.stderr


def test_what_stands_already_is_left_alone() -> None:
    for program in ("docker-engine", "base-image"):
        done = script(name=None, program=program)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_daemon_that_ends_at_once_is_named_with_its_log() -> None:
    other = f"{NAME}d"
    try:
        done = script(
            "up", "--no-bridge", "--nodes", "1", "--set", "SelectType=select/nonsense", name=other
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == "cluster: controller ended after its start"
        assert "select/nonsense" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        good("down", name=other)
    assert left_of(other) == []
