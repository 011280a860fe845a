# SPDX-License-Identifier: Apache-2.0
"""Taking clusters down where the engine keeps some of them; the docker command is a fake."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from cluster import commands, removal
from cluster.engine import Trouble

FAKE = """#!{python}
import json, sys
path = {state!r}
state = json.load(open(path))
words = sys.argv[1:]
state["calls"].append(words)
code = 0

def mine(table):
    label = [word for word in words if word.startswith("label=schedbridge.cluster")]
    wanted = label[0].split("=", 2)[2:] if label else []
    for name, owner in table.items():
        if owner and (not wanted or owner in wanted):
            print(owner if ".Label" in words[-1] else name)

def refuse(text):
    global code
    code = 1
    print("Error response from daemon: " + text, file=sys.stderr)

kept = state["kept"]
match words:
    case ["version", *_]:
        print("1")
    case ["ps", *_] if any("cgroups" in word for word in words):
        pass
    case ["ps", *_]:
        mine(state["containers"])
    case [kind, "ls", *_]:
        mine(state[kind + "s"])
    case ["rm", "--force", "--volumes", *names]:
        for name in names:
            if kept.get(name, 0) > 0:
                kept[name] -= 1
                refuse(f"removal of container {{name}} is already in progress")
            else:
                del state["containers"][name]
    case ["volume", "rm", *names]:
        for name in names:
            if state["containers"]:
                refuse("volume is in use")
            else:
                del state["volumes"][name]
    case ["network", "inspect", name, *_]:
        if name in state["networks"]:
            print(json.dumps({{one: {{"Name": one}} for one in state["endpoints"]}}))
        else:
            refuse("network not found")
    case ["network", "disconnect", "--force", name, one]:
        if one in state["stuck"]:
            refuse("endpoint not found")
        else:
            state["endpoints"].remove(one)
    case ["network", "rm", name]:
        if state["endpoints"] or state["containers"] or kept.get(name, 0) > 0:
            kept[name] = kept.get(name, 0) - 1
            refuse(f"error while removing network: network {{name}} has active endpoints")
        else:
            del state["networks"][name]
    case _:
        refuse(f"the fake does not know {{words}}")
json.dump(state, open(path, "w"))
sys.exit(code)
"""


class Fake:
    """A docker command with containers, volumes and networks in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        docker = folder / "docker"
        docker.write_text(FAKE.format(python=sys.executable, state=str(self.path)))
        docker.chmod(0o755)
        self.write()

    def write(self, **more: object) -> None:
        """One cluster `a`, as it stands; `more` says what is otherwise."""
        state = {
            "containers": {"a-controller": "a", "a-n1": "a"}, "volumes": {"a-etc": "a"},
            "networks": {"a": "a"}, "endpoints": [], "stuck": [], "kept": {}, "calls": [],
        }  # fmt: skip
        self.path.write_text(json.dumps({**state, **more}))

    def state(self) -> dict:
        return json.loads(self.path.read_text())


@pytest.fixture
def docker(tmp_path, monkeypatch) -> Fake:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(removal, "PAUSE_S", 0.0)
    return Fake(tmp_path)


def gone(docker):
    state = docker.state()
    return not (state["containers"] or state["volumes"] or state["networks"])


def test_all_is_removed_and_again_is_no_error(docker):
    assert commands.main(["down", "--name", "a"]) == 0
    assert gone(docker)
    assert commands.main(["down", "--name", "a"]) == 0


def test_containers_go_before_volumes_before_the_network(docker):
    removal.down("a")
    made = [words[:2] for words in docker.state()["calls"] if "rm" in words[:2]]
    assert made == [["rm", "--force"], ["volume", "rm"], ["network", "rm"]]


def test_endpoints_of_containers_that_vanished_are_cut(docker):
    docker.write(containers={}, endpoints=["a-n1", "a-n2"])
    removal.down("a")
    assert gone(docker)


@pytest.mark.parametrize("kept", [{"a": 2}, {"a-n1": 2}, {"a": 1, "a-controller": 1}])
def test_what_is_busy_for_a_moment_is_removed_in_the_end(docker, kept):
    docker.write(kept=kept)
    removal.down("a")
    assert gone(docker)


def test_a_network_that_stays_does_not_keep_the_rest_and_is_named(docker, capsys):
    docker.write(endpoints=["a-n1"], stuck=["a-n1"])
    assert commands.main(["down", "--name", "a"]) == 1
    state = docker.state()
    assert (state["containers"], state["volumes"]) == ({}, {})
    said = capsys.readouterr().err
    assert "has active endpoints" in said
    assert "does not remove network a (with endpoints of a-n1). Restart the engine" in said
    assert "scripts/cluster down --name a" in said
    tries = [words for words in state["calls"] if words[:2] == ["network", "rm"]]
    assert len(tries) == removal.TRIES


def test_one_cluster_that_stays_keeps_no_other(docker, capsys):
    docker.write(
        containers={"a-n1": "a", "b-n1": "b"}, volumes={"a-etc": "a", "b-etc": "b"},
        networks={"a": "a", "b": "b"}, kept={"a-n1": 99},
    )  # fmt: skip
    assert commands.main(["down", "--all"]) == 1
    assert "not all is removed of: a" in capsys.readouterr().err
    assert "b-n1" not in docker.state()["containers"]


def test_an_empty_network_that_the_engine_keeps_is_used_again(docker):
    docker.write(containers={}, kept={"a": 99})
    assert removal.clear_for_up("a") is True
    docker.write(containers={})
    assert removal.clear_for_up("a") is False
    assert gone(docker)


def test_what_cannot_be_used_again(docker):
    docker.write(containers={}, endpoints=["a-n1"], stuck=["a-n1"])
    with pytest.raises(Trouble, match="endpoints of a-n1"):
        removal.clear_for_up("a")
    docker.write(containers={}, volumes={}, networks={"a": ""})
    with pytest.raises(Trouble, match="a network 'a' that no cluster made"):
        removal.clear_for_up("a")
    assert docker.state()["networks"] == {"a": ""}
