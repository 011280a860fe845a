# SPDX-License-Identifier: Apache-2.0
"""`schedbridge topology`: every source, both outputs, and one line for what is wrong."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bridge.cli.main import main
from bridge.cli.operators import topology as module
from bridge.errors import Unreachable
from bridge.model.topology import regular
from bridge.ports import State
from bridge.recording.recordings import Recording, write_recording
from bridge.registry import PRESETS, build
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.topology_view import topology_reply
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot

CONF = """
SwitchName=left Nodes=n[1-4]
SwitchName=right Nodes=n[5-8]
SwitchName=top Switches=left,right
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "topology.conf"
    path.write_text(CONF)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["topology", *map(str, words)])
    code = stopped.value.code or 0
    assert isinstance(code, int)
    out, err = capsys.readouterr()
    return code, out, err


def published(*, switches: bool = True) -> Published:
    snapshot = a_snapshot(
        nodes=8,
        jobs=[a_job(id="7", nodes=3)],
        running=[a_running_job(id="5", nodes=(0, 1, 4))],
        now_s=1_000_000,
    )()
    if switches:
        snapshot = dataclasses.replace(snapshot, topology=regular(8, 2, 4))
    plan = Decider(build(PRESETS["easy"])).decide(snapshot)
    return Published(snapshot, plan, NodeIndex(snapshot.nodes.names))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Published]]:
    """What the service knows; without it, nobody answers."""
    known: dict[str, Published] = {}

    class Service:
        def topology(self) -> pb.TopologyReply:
            if not known:
                raise Unreachable("no service")
            return topology_reply(known["now"], 0)

        def status(self) -> pb.StatusReply:
            return pb.StatusReply(cluster="prod")

    @contextmanager
    def ask(_config: object, _socket: object) -> Iterator[Service]:
        yield Service()

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "_no_service_named", lambda _config, _socket: False)
    return known


def test_a_file_alone(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", conf)
    assert code == 0
    assert out.splitlines()[1:5] == [
        "8 nodes: 8 idle", "top  8 idle", " left   ....", " right  ....",
    ]  # fmt: skip


def test_a_file_where_there_is_no_service(
    conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHEDBRIDGE_SOCKET", raising=False)
    monkeypatch.setattr(module.default_sockets, "OPERATOR", tmp_path / "absent")
    code, out, err = run(capsys, "show", "--file", conf)
    assert code == 0
    assert "8 nodes: 8 idle" in out
    assert err == "no service on this machine: switches only\n"
    code, out, err = run(capsys, "show", "--file", conf, "--socket", tmp_path / "none")
    assert (code, out, len(err.splitlines())) == (1, "", 1)


def test_the_living_service(
    service: dict[str, Published], conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service["now"] = published()
    code, out, _ = run(capsys, "show")
    assert code == 0
    assert "cluster prod" in out
    assert "8 nodes: 2 idle, 6 busy; 2 jobs" in out
    assert "  s0  AA" in out
    assert "starts now" in out
    code, out, _ = run(capsys, "show", "--json")
    told = json.loads(out)
    assert {job["id"]: job["leaf_switches"] for job in told["jobs"]} == {"5": 2, "7": 2}
    code, out, _ = run(capsys, "show", "--file", conf, "--json")
    assert {job["id"]: job["leaf_switches"] for job in json.loads(out)["jobs"]} == {"5": 2, "7": 2}
    assert json.loads(out)["levels"] == 2


def test_a_service_without_switches(
    service: dict[str, Published], conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service["now"] = published(switches=False)
    code, _, err = run(capsys, "show")
    assert code == 1
    assert "set 'topology' in its configuration, or give --file" in err
    assert run(capsys, "show", "--file", conf)[0] == 0


def test_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cycle = published()
    path = tmp_path / "one.cycle.json.gz"
    write_recording(path, Recording(cycle.snapshot, State(), PRESETS["easy"], 0, cycle.plan))
    code, out, _ = run(capsys, "show", path)
    assert code == 0
    assert "2 jobs" in out
    code, out, _ = run(capsys, "check", "--nodes", path, "--json", _conf(tmp_path, "n[1-7],x"))
    assert code == 1
    assert json.loads(out)["on_no_switch"] == ["n8"]
    assert json.loads(out)["not_of_the_cluster"] == ["x"]


def test_a_simulated_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf, system = _conf(tmp_path, "n[1-4]"), tmp_path / "mine.yaml"
    system.write_text(f'nodes: [{{names: "n[1-5]", cpus: 4}}]\ntopology: {conf.name}\n')
    code, out, _ = run(capsys, "show", system)
    assert code == 0
    assert "on no switch  1 idle" in out
    system.write_text('nodes: [{names: "n[1-4]", cpus: 4}]\n')
    code, _, err = run(capsys, "show", system)
    assert (code, len(err.splitlines())) == (1, 1)
    assert run(capsys, "show", system, "--file", conf)[0] == 0


def test_a_drawing(conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tree.svg"
    code, out, _ = run(capsys, "show", conf, "--svg", path)
    assert (code, out) == (0, "")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    code, _, err = run(capsys, "show", conf, "--svg", tmp_path / "none" / "tree.svg")
    assert (code, len(err.splitlines())) == (1, 1)


def test_a_sound_file(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", conf)
    assert code == 0
    assert out == f"{conf}: 8 nodes, 2 leaf switches of 4, 2 levels\n"


def test_what_a_file_does_not_say(
    tmp_path: Path, service: dict[str, Published], capsys: pytest.CaptureFixture[str]
) -> None:
    service["now"] = published()
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-6],z[1-20]\n")
    code, out, _ = run(capsys, "check", path, "--live")
    assert code == 1
    assert "2 fabrics (a, b)" in out
    assert "20 nodes that the cluster does not have: z1, z2" in out
    assert "and 12 more" in out
    assert "2 nodes of the cluster on no switch: n7, n8" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n", "line 2: b: n1 is already on a"),
        ("SwitchName=a Switches=b\n", "there is no switch b"),
        ("nonsense\n", "'nonsense' is not Key=Value"),
        ("", "describes neither switches"),
    ],
)
def test_a_wrong_file_is_one_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "topology.conf"
    path.write_text(text)
    for verb in ("show", "check"):
        code, out, err = run(capsys, verb, path)
        assert (code, out, len(err.splitlines())) == (1, "", 1)
        assert said in err


def test_what_contradicts_itself(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ("show", conf, "--file", conf),
        ("show", "missing.cycle.json.gz"),
        ("show", "missing.conf"),
        ("check", conf, "--live", "--nodes", conf),
        ("check", conf, "--nodes", conf),
        ("show", "--socket", "/nowhere/socket"),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out, len(err.splitlines())) == (1, "", 1), words


def _conf(folder: Path, nodes: str) -> Path:
    path = folder / "some.conf"
    path.write_text(f"SwitchName=only Nodes={nodes}\n")
    return path
