# SPDX-License-Identifier: Apache-2.0
"""Settings that an administrator gets wrong, or somebody makes poisonous: one clear line, soon.

Nothing here looks at a clock: what would never end is stopped by the time limit of the processes.
"""

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from bridge import files, yaml_text
from bridge.errors import BridgeError, ConfigError
from bridge.papers.placement.neural_weights import read_weights
from bridge.rpc.transport.revoked import Revoked
from bridge.rpc.transport.tls import Certificates
from bridge.service.config import TlsSection, load, parse
from bridge.slurm.topology_conf import named_nodes, parse_topology

ROOT = Path(__file__).parents[3]


def limited():
    """No process of a test may take the machine's memory, or its time."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


CALLS = """
import contextlib, io, json, sys
from bridge.cli.main import main

def called(words):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                code = main(words) or 0
            except SystemExit as end:
                code = end.code or 0
    return code, errors.getvalue()

print(json.dumps([called(words) for words in json.loads(sys.argv[1])]))
"""


def called(commands):
    """Codes and errors of commands that are called one after the other in one process."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(commands)],
        check=False, capture_output=True, text=True, timeout=300, preexec_fn=limited,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------ files


def pipe(path):
    os.mkfifo(path)


def huge(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: it takes no room


SPECIAL = {
    "device": (lambda path: path.symlink_to("/dev/zero"), "Is not a regular file"),
    "random": (lambda path: path.symlink_to("/dev/urandom"), "Is not a regular file"),
    "pipe": (pipe, "Is not a regular file"),
    "directory": (Path.mkdir, "Is a directory"),
    "huge": (huge, "Is longer than"),
    "loop": (lambda path: path.symlink_to(path), "Too many levels"),
    "missing": (lambda path: None, "No such file"),
}


@pytest.mark.parametrize(("make", "words"), SPECIAL.values(), ids=SPECIAL)
def test_files_that_are_none(tmp_path, make, words):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError, match=words):
        files.read_bytes(path)
    with pytest.raises(ConfigError, match=words):
        load(path)
    with pytest.raises(ConfigError, match=words):
        read_weights(path)
    with pytest.raises(ConfigError, match=words):
        named_nodes(path)
    tls = TlsSection(address="127.0.0.1:6819", ca=path, cert=path, key=path, subjects=("c",))
    with pytest.raises(ConfigError, match=words):
        Certificates(tls, "", "")
    with pytest.raises(ConfigError, match=words):
        Revoked(path, "agents.revoked")


def test_a_file_of_just_the_size_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 1000)
    assert files.read_bytes(tmp_path / "file", 1000) == b"x" * 1000
    with pytest.raises(OSError, match="Is longer than 999 bytes"):
        files.read_bytes(tmp_path / "file", 999)


COMMANDS = {
    "check-config": ["check-config", "FILE"],
    "serve": ["serve", "--config", "FILE"],
    "status": ["status", "--config", "FILE"],
    "policy": ["policy", "set", "FILE", "--socket", "/nowhere/s"],
    "simulate trace": ["lab", "simulate", "FILE"],
    "simulate policy": ["lab", "simulate", "FILE", "--policy", "FILE"],
    "replay": ["lab", "replay", "FILE"],
    "topology": ["topology", "check", "FILE"],
}


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_commands_refuse_what_never_ends(tmp_path, kind):
    path = tmp_path / "file.yaml"
    SPECIAL[kind][0](path)
    told = [[str(path) if word == "FILE" else word for word in each] for each in COMMANDS.values()]
    for name, (code, errors) in zip(COMMANDS, called(told), strict=True):
        assert code in (1, 2), name
        assert str(path) in errors.replace("\n", ""), name


# ------------------------------------------------------------------ YAML


def bomb(levels=30):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    return "\n".join(lines) + "\n"


def mapping_bomb(levels=30):
    lines = ["a0: &a0 {x: 1, y: 2}"]
    for level in range(1, levels):
        lines.append(
            f"a{level}: &a{level} {{p: *a{level - 1}, q: *a{level - 1}, r: *a{level - 1}}}"
        )
    return "\n".join(lines) + "\n"


def merge_bomb(levels=25):
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}], k: 1}}")
    return "\n".join(lines) + "\n"


YAML = {
    "aliases": (bomb(), "more than 200000 values"),
    "mappings": (mapping_bomb(), "more than 200000 values"),
    "merges": (merge_bomb(), "more than 200000 values"),
    "circle": ("a: &a [*a]", "a value contains itself"),
    "circle of mappings": ("policy: &a {plan: *a}", "a value contains itself"),
    "long": ("#" * (1 << 21), "longer than"),
    "many": ("[" + "1," * 300_000 + "]", "more than 200000 values"),
    "deep list": ("[" * 200_000, "nested too deeply"),
    "deep mapping": ("{a: " * 100_000, "nested too deeply"),
    "deep block": ("\n".join(" " * depth + "a:" for depth in range(500)), "nested too deeply"),
    "deep aliases": ("a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i-1}]\n" for i in range(1, 90)),
                     "nested too deeply"),
    "no date": ("a: 2024-99-99", "month must be in"),
    "long number": ("a: " + "9" * 10_000, "digits"),
    "object": ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    "unhashable": ("? [1]\n: 2", "unhashable"),
    "two documents": ("a: 1\n---\nb: 2", "document"),
    "binary": ("a: \x00", "control characters"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), YAML.values(), ids=YAML)
def test_yaml_that_is_poisonous(text, words):
    for read in (yaml_text.load, lambda text: parse(text, "f")):
        with pytest.raises((yaml_text.NoYaml, ConfigError), match=words) as caught:
            read(text)
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


def test_anchors_that_save_typing_are_welcome():
    text = "base: &b {from: 1}\nlist: [{<<: *b, to: 2}, {<<: *b, to: 3}, *b]"
    assert yaml_text.load(text)["list"] == [{"from": 1, "to": 2}, {"from": 1, "to": 3}, {"from": 1}]
    assert yaml_text.load("") is None


@pytest.mark.parametrize("text", ["2e-05", "-1e5", "1.5E+3", ".5e1", "7.e2", "+1e0", "1.0", "3"])
def test_numbers_are_those_of_json_and_yaml_1_2(text):
    found = yaml_text.load(f"[{text}]")
    assert found == [float(text)]
    assert not isinstance(found[0], str)


@pytest.mark.parametrize("text", ["1e", "e5", "1e5a", "n1e5", "1e5-1e6", "'1e5'", ".e5", "-"])
def test_texts_stay_texts(text):
    assert yaml_text.load(f"[{text}]") == [text.strip("'")]


# ------------------------------------------------------------------ numbers of things


def limits(count, **more):
    return [{"user": f"u{i}", "resource": "cpus", "items": 1, **more} for i in range(count)]


def crons(count):
    return [{**one, "valid": {"cron": f"{i % 60} {i // 60} * * *", "length": "1h"}}
            for i, one in enumerate(limits(count))]  # fmt: skip


def pools(count, **more):
    return [{"name": f"p{i}", "resource": "cpus", "keep": 1, **more} for i in range(count)]


TOO_MANY = {
    "limits": ({"limits": limits(20_000)}, "planning.limits: has more than 1000 entries"),
    "pools": ({"free_pools": pools(300)}, "planning.free_pools: has more than 200 entries"),
    "access": (
        {"free_pools": pools(1, access=[{"users": ["a"]}] * 200)}, "access: has more than 100"
    ),
    "users": (
        {"free_pools": pools(1, access=[{"users": ["a"] * 5000}])}, "users: has more than 1000"
    ),
    "resources": (
        {"free_pools": pools(1, access=[{f"r{i}": 1 for i in range(99)}])},
        "bounds more than 50 resources",
    ),
    "cron text": (
        {"limits": limits(1, valid={"cron": ",".join(["1"] * 9000) + " * * * *", "length": "1h"})},
        "cron: is longer than 200 characters",
    ),
    "crons": ({"limits": crons(150)}, "more than 100 different times that repeat"),
    "nodes": (
        {"free_pools": [
            {"name": f"p{i}", "nodes": {"names": "n[1-60000]"}} for i in range(2)
        ]},
        "together name more than 100000 nodes",
    ),
    "node range": (
        {"free_pools": [{"name": "p", "nodes": {"names": "n[1-99999999999]"}}]}, "names",
    ),
    "features": (
        {"free_pools": [{"name": "p", "nodes": {"features": "(" * 50_000}}]},
        "features: is longer than 1000 characters",
    ),
    "features that are deep": (
        {"free_pools": [{"name": "p", "nodes": {"features": "(" * 900 + "a" + ")" * 90}}]},
        "features",
    ),
    "long name": ({"limits": [{"user": "u" * 10_000, "items": "5%"}]}, "user: is longer than 255"),
    "digits": ({"limits": limits(1, items="9" * 200)}, "is more than"),
    "duration": ({"limits": limits(1, duration="9" * 200 + "d")}, "duration: "),
    "nan": ({"limits": limits(1, items=float("nan"))}, "must be a number"),
}  # fmt: skip


@pytest.mark.parametrize(("planning", "words"), TOO_MANY.values(), ids=TOO_MANY)
def test_numbers_of_things_are_bounded(planning, words):
    with pytest.raises(ConfigError) as caught:
        parse(json.dumps({"planning": planning}).replace("NaN", ".nan"), "f")
    assert words in str(caught.value)
    assert all(len(line) < 400 for line in str(caught.value).splitlines())
    assert len(str(caught.value).splitlines()) <= 21


def test_a_thousand_limits_are_taken():
    text = json.dumps({"planning": {"limits": limits(1000)}})
    assert len(parse(text, "f").planning.rules().limits) == 1000


def test_a_thousand_problems_are_twenty_lines_and_their_number():
    text = json.dumps({"planning": {"limits": limits(900, resource="")}})
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "f: and 880 more problems"


@pytest.mark.parametrize("key", ["controller: {users: ", "operator: {admins: "])
def test_lists_of_users_are_bounded(key):
    with pytest.raises(ConfigError, match="has more than 1000 entries"):
        parse(key + "[" + "a, " * 5000 + "a]}", "f")


POLICIES = {
    "name": ({"name": "x" * 5000}, "policy.name: "),
    "lines": ({"name": "a\nERROR forged"}, "policy.name: "),
    "preset": ("y" * 5000, "no preset"),
    "value": ({"plan": {"name": "easy", "depth": ["z" * 5000]}}, "policy.plan.depth: must be"),
    "algorithm": ({"plan": "y" * 5000}, "no algorithm"),
    "key": ({"k" * 900: 1}, "unknown key"),
    "parameter": ({"plan": {"name": "easy", "k" * 900: 1}}, "no such parameter"),
    "infinite": ({"place": {"name": "compact", "budget_ms": float("inf")}}, "budget_ms"),
    "not a number": ({"place": {"name": "compact", "budget_ms": float("nan")}}, "budget_ms"),
    "weights": ({"place": {"name": "neural", "weights": "/dev/zero"}}, "Is not a regular file"),
    "weights that are nowhere": (
        {"place": {"name": "neural", "weights": "/nowhere\0x"}}, "weights",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "words"), POLICIES.values(), ids=POLICIES)
def test_policies_that_are_poisonous(policy, words):
    text = json.dumps({"policy": policy}).replace("Infinity", ".inf").replace("NaN", ".nan")
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 800
    assert len(str(caught.value).splitlines()) == 1


# ------------------------------------------------------------------ other files


def test_a_topology_that_names_too_much():
    """Slow: expands a million names."""
    lines = "\n".join(f"SwitchName=s{i} Nodes=n[0-49999]" for i in range(50))
    with pytest.raises(ConfigError, match="line 20: with this line more than 1000000 names"):
        parse_topology(lines, ["n0"])


def test_weights_that_unpack_to_more_than_they_are(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", zeros=np.zeros(1 << 26, dtype=np.uint8))
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 20
    with pytest.raises(
        ConfigError, match=r"bomb.npz: no file of weights: Needs more than 16 MiB of memory"
    ):
        read_weights(tmp_path / "bomb.npz")


def test_a_pipe_that_somebody_writes_to_is_refused_as_well(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: os.close(os.open(tmp_path / "pipe", os.O_RDWR)), daemon=True
    )
    writer.start()
    with pytest.raises(BridgeError, match="Is not a regular file"):
        load(tmp_path / "pipe")
    writer.join()
