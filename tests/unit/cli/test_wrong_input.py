# SPDX-License-Identifier: Apache-2.0
"""Every command with whatever can be wrong: one clear line, an exit code, never a traceback."""

import gzip
import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from bridge.cli.main import commands

ROOT = Path(__file__).parents[3]
SHIPPED = files("bridge.lab.sim").joinpath("data")
TRACE = str(SHIPPED.joinpath("KTH-SP2-1996-excerpt.swf.gz"))
RECORDING = str(SHIPPED.joinpath("instances/kit/kit-1-001.cycle.json.gz"))
NOWHERE = ("--socket", "/nowhere/s")
DEAF = ("--socket", "DEAF")
"""A file at which nobody answers: what is asked is put into words before that is found out."""

CONTENTS = {
    "empty": b"",
    "binary": bytes(range(256)) * 10,
    "text": b"what is this?\n",
    "yaml": b"x: 1\n",
    "list": b"- 1\n",
    "bad-yaml": b"policy: [",
    "json": b'{"a": NaN}',
    "nan": b'{"id": "a", "idle_nodes": [NaN], "job_sizes": [Infinity]}',
    "huge-numbers": b'{"id": "a", "idle_nodes": [1e400], "job_sizes": [1' + b"0" * 50 + b"]}",
    "deep": b"[" * 50_000,
    "cut.gz": gzip.compress(b"1 2 3\n" * 5000)[:-40],
    "bent.gz": b"\x1f\x8b\x08\x00" + b"\xff" * 100,
    "no-yaml.gz": gzip.compress(b"[" * 50_000),
    "short.swf": b"1 2 3\n",
    "nan.swf": b"1 nan 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n",
    "inf.swf": b"1 0 0 inf 1 -1 -1 1 inf -1 1 1 1 1 1 -1 -1 -1\n",
    "huge.swf": b"1 0 0 1e300 1e300 -1 -1 1e300 1e300 -1 1 1 1 1 1 -1 -1 -1\n",
    "topology.conf": b"SwitchName=a Switches=a\n",
}


@pytest.fixture(scope="module")
def poison(tmp_path_factory):
    """A directory of files that are nothing, truncated ones of what is shipped among them."""
    home = tmp_path_factory.mktemp("poison")
    for name, content in CONTENTS.items():
        (home / name).write_bytes(content)
    (home / "directory").mkdir()
    for whole in (TRACE, RECORDING):
        raw = Path(whole).read_bytes()
        (home / f"half-{Path(whole).name}").write_bytes(raw[: len(raw) // 2])
    found = json.loads(gzip.decompress(Path(RECORDING).read_bytes()))
    for name, change in {
        "version": {"version": 99},
        "seed": {"seed": float("nan")},
        "policy": {"policy": {"name": "x"}},
        "plan": {"plan": None},
    }.items():
        raw = json.dumps({**found, **change}).encode()
        (home / f"{name}.cycle.json.gz").write_bytes(gzip.compress(raw))
    return home


def refused(schedbridge, *arguments):
    code, _, err = schedbridge(*arguments)
    assert code in (1, 2), (arguments, code, err)
    assert "Traceback" not in err
    assert err, arguments
    if code == 1:
        lines = err.splitlines()
        assert all(line.startswith(("schedbridge: ", "warning: ")) for line in lines), err
        assert len(lines) <= 5, err
        assert max(map(len, lines)) < 1000, err
    return err


def names(home):
    return sorted(path.name for path in home.iterdir())


TAKES_FILES = {
    "serve": ["serve", "--config", "FILE"],
    "check-config": ["check-config", "FILE"],
    "status": ["status", "--config", "FILE"],
    "plan": ["plan", "--config", "FILE"],
    "explain": ["explain", "1", "--config", "FILE"],
    "accuracy": ["accuracy", "--config", "FILE"],
    "policy show": ["policy", "show", "--config", "FILE"],
    "policy set": ["policy", "set", "FILE", *NOWHERE],
    "simulate": ["lab", "simulate", "FILE"],
    "simulate system": ["lab", "simulate", TRACE, "--jobs", "5", "--system", "FILE"],
    "simulate policy": ["lab", "simulate", TRACE, "--jobs", "5", "--policy", "FILE"],
    "simulate site": ["lab", "simulate", TRACE, "--jobs", "5", "--site", "FILE"],
    "simulate corridor": ["lab", "simulate", "power-paper", "--jobs", "5", "--corridor", "FILE"],
    "record trace": ["lab", "record", "--trace", "FILE", "--out", "OUT"],
    "record system": ["lab", "record", "--system", "FILE", "--out", "OUT"],
    "replay": ["lab", "replay", "FILE"],
    "replay policy": ["lab", "replay", RECORDING, "--policy", "FILE"],
    "replay site": ["lab", "replay", RECORDING, "--site", "FILE"],
    "topology check": ["topology", "check", "FILE"],
    "topology show": ["topology", "show", "FILE"],
    "topology file": ["topology", "show", RECORDING, "--file", "FILE"],
    "topology nodes": ["topology", "check", "FILE", "--nodes", "FILE"],
    "bench planning": ["bench.py", "planning", "--system", "FILE", "--jobs", "100"],
    "bench dispatch": ["lab", "compare", "--instances", "FILE"],
    "bench policies": ["lab", "compare", "--policies", "FILE"],
    "bench placement": ["bench.py", "placement", "--instances", "FILE"],
    "bench topology": ["bench.py", "placement", "--topology", "FILE"],
    "train": ["lab", "train", "placement", "--system", "FILE"],
}
HARMLESS = {
    # An empty file, or one without the section, is a configuration; these are then refused
    # for want of a service.
    "serve": {"empty"},
    "check-config": {"empty"},
    "simulate site": {"empty", "yaml"},
    "replay site": {"empty", "yaml"},
}


@pytest.mark.parametrize("command", TAKES_FILES)
def test_files_that_are_something_else(schedbridge, tmp_path, poison, command):
    for name in (*names(poison), "nothing-there"):
        if name in HARMLESS.get(command, ()):
            continue
        words = [
            str(poison / name)
            if word == "FILE"
            else str(tmp_path / "out")
            if word == "OUT"
            else word
            for word in TAKES_FILES[command]
        ]
        refused(schedbridge, *words)


@pytest.mark.parametrize("name", commands())
def test_options_that_are_not_there(schedbridge, name):
    assert "no such option" in refused(schedbridge, *name.split(), "--nonsense").lower()
    refused(schedbridge, *name.split(), *["x"] * 30)


WRONG = {
    "jobs": ["lab", "simulate", TRACE, "--jobs", "0"],
    "jobs nan": ["lab", "simulate", TRACE, "--jobs", "nan"],
    "procs none": ["lab", "simulate", TRACE, "--procs", "0", "--jobs", "2"],
    "procs less": ["lab", "simulate", TRACE, "--procs", "-5", "--jobs", "2"],
    "procs huge": ["lab", "simulate", TRACE, "--procs", "9" * 30, "--jobs", "2"],
    "procs many": ["lab", "simulate", TRACE, "--procs", "999999999999", "--jobs", "2"],
    "seed less": ["lab", "simulate", TRACE, "--seed", "-1", "--jobs", "2"],
    "corridor alone": ["lab", "simulate", TRACE, "--corridor", TRACE, "--jobs", "2"],
    "node power": ["lab", "simulate", TRACE, "--node-power", "71", "--jobs", "2"],
    "node power less": ["lab", "simulate", TRACE, "--node-power", "-1:5", "--jobs", "2"],
    "node power turned": ["lab", "simulate", TRACE, "--node-power", "9:5", "--jobs", "2"],
    "power error alone": ["lab", "simulate", TRACE, "--power-error", "5", "--jobs", "2"],
    "power error": ["lab", "simulate", "power-paper", "--power-error", "nan"],
    "power error huge": ["lab", "simulate", "power-paper", "--power-error", "91"],
    "power sensors alone": ["lab", "simulate", TRACE, "--power-sensors", "--jobs", "2"],
    "power down alone": ["lab", "simulate", TRACE, "--power-down", "60", "--jobs", "2"],
    "power down unbounded": [
        "lab", "simulate", TRACE, "--node-power", "71:250", "--power-down", "60",
    ],
    "power down less": ["lab", "simulate", "power-paper", "--power-down", "-1"],
    "power paper nodes": ["lab", "simulate", "power-paper", "--node-power", "1:2"],
    "power paper procs": ["lab", "simulate", "power-paper", "--procs", "5"],
    "power paper speed": ["lab", "simulate", "power-paper", "--speed-up", "amdahl:0.1"],
    "faults": ["lab", "simulate", TRACE, "--faults", "-1", "--jobs", "2"],
    "decision time": ["lab", "simulate", TRACE, "--decision-time", "nan", "--jobs", "2"],
    "decision time inf": ["lab", "simulate", TRACE, "--decision-time", "inf", "--jobs", "2"],
    "decision time less": ["lab", "simulate", TRACE, "--decision-time", "-3", "--jobs", "2"],
    "predict": ["lab", "simulate", TRACE, "--predict", "stars", "--jobs", "2"],
    "policy": ["lab", "simulate", TRACE, "--policy", "magic", "--jobs", "2"],
    "engine": ["lab", "simulate", TRACE, "--engine", "steam", "--jobs", "2"],
    "out a file": ["lab", "simulate", TRACE, "--jobs", "2", "--out", "/dev/null/x"],
    "out proc": ["lab", "simulate", TRACE, "--jobs", "2", "--out", "/proc/nowhere"],
    "record load": ["lab", "record", "--system", "kit", "--load", "nan", "--out", "OUT"],
    "record at": ["lab", "record", "--system", "kit", "--at", "1e400", "--out", "OUT"],
    "record out": ["lab", "record", "--system", "kit", "--cycles", "1", "--out", "/proc/nowhere/x"],
    "record nothing": ["lab", "record", "--out", "OUT", *NOWHERE],
    "record predict": ["lab", "record", "--system", "kit", "--predict", "stars", "--out", "OUT"],
    "replay seed": ["lab", "replay", RECORDING, "--seed", "-1"],
    "replay anonymise": ["lab", "replay", RECORDING, "--anonymise", "/proc/nowhere/x"],
    "demo out": ["lab", "demo", "--jobs", "1", "--out", "/proc/nowhere/x"],
    "budget": ["lab", "compare", "--policies", "search@nan"],
    "budget huge": ["lab", "compare", "--policies", "search@" + "9" * 40],
    "bench power": ["bench.py", "power", "--policies", "magic"],
    "bench power sight": ["bench.py", "power", "--policies", "easy@nowhere"],
    "bench power trace": ["bench.py", "power", "--scenario", TRACE, "--policies", "static"],
    "bench power seeds": ["bench.py", "power", "--seeds", "0"],
    "objective": ["lab", "compare", "--objective", "luck"],
    "queue": ["lab", "compare", "--min-queue", "999999"],
    "placers": ["bench.py", "placement", "--placers", "magic"],
    "placers at": ["bench.py", "placement", "--placers", "annealing@nan"],
    "placers at inf": ["bench.py", "placement", "--placers", "compact@inf"],
    "placers less": ["bench.py", "placement", "--placers", "compact@-1"],
    "svg": ["topology", "show", RECORDING, "--file", "/nowhere", "--svg", "/proc/nowhere/x"],
    "explain": ["explain", "no-job", *NOWHERE],
    "explain long": ["explain", "9" * 5000, *NOWHERE],
    "plan limit": ["plan", "--limit", "-1", *NOWHERE],
    "plan limit huge": ["plan", "--limit", "5000000000", *DEAF],
    "record queue huge": ["lab", "record", "--min-queue", "5000000000", "--out", "OUT", *DEAF],
    "faults huge": ["lab", "simulate", TRACE, "--faults", "9" * 20, "--jobs", "2"],
    "explain no text": ["explain", "\udcff", *DEAF],
    "accuracy no text": ["accuracy", "--partition", "\udcff", *DEAF],
    "unreserve no text": ["unreserve", "\udcff", *DEAF],
    "reserve no text": ["reserve", "a", "--start", "now", "--duration", "1h", "-N", "1", "--users",
                        "\udcff", *DEAF],
    "policy no text": ["policy", "set", "\udcff", *DEAF],
    "elastic no name": ["elastic", "show", "", *DEAF],
    "elastic no text": ["elastic", "hold", "\udcff", *DEAF],
    "elastic many": ["elastic", "grow", "7", str(2**32), *DEAF],
    "socket": ["status", "--socket", "x" * 300],
    "socket nul": ["status", "--socket", "a\0b"],
    "socket empty": ["status", "--socket", ""],
    "reserve start": ["reserve", "a", "--start", "soon", "--duration", "1h", "-N", "1", *NOWHERE],
    "reserve late": ["reserve", "a", "--start", "9999-99-99T00:00", "--duration", "1h", *NOWHERE],
    "reserve long": ["reserve", "a", "--start", "now", "--duration", "9" * 99, "-N", "1", *NOWHERE],
    "reserve plus": ["reserve", "a", "--start", "now+" + "9" * 99 + "hours", "--duration", "1h",
                     *NOWHERE],
    "reserve nodes": ["reserve", "a", "--start", "now", "--duration", "1h", "-N", "-1", *NOWHERE],
    "reserve many": ["reserve", "a", "--start", "now", "--duration", "1h", "-N", "9" * 30,
                     *NOWHERE],
    "reserve chunks": ["reserve", "a", "--start", "now", "--duration", "1h", "--chunks", "((((",
                       *NOWHERE],
    "policy text": ["policy", "set", "magic: [", *NOWHERE],
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_values_that_cannot_be(schedbridge, tmp_path, words):
    (tmp_path / "deaf").touch()
    places = {"OUT": str(tmp_path / "out"), "DEAF": str(tmp_path / "deaf")}
    refused(schedbridge, *(places.get(word, word) for word in words))


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["check-config", "CONFIG"],
        ["lab", "simulate", TRACE, "--jobs", "20", "--json"],
        ["lab", "replay", RECORDING],
        ["topology", "show", RECORDING],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("end", ["closed", "full"])
def test_nobody_reads_what_is_printed(tmp_path, words, end):
    """As `schedbridge plan | head`, and as on a full disk."""
    (tmp_path / "c.yaml").write_text("policy: easy\n")
    words = [str(tmp_path / "c.yaml") if word == "CONFIG" else word for word in words]
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [sys.executable, "-m", "bridge.cli.main", *words],
        check=False, stdout=writer if end == "closed" else full, stderr=subprocess.PIPE, text=True,
        timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(writer)
    os.close(full)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if words != ["topology", "show", RECORDING]:  # it has no switches: refused before
        assert done.returncode == 1
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize(
    "words",
    [
        ["check-config", "FILE"],
        ["lab", "simulate", "FILE"],
        ["lab", "replay", "FILE"],
        ["topology", "check", "FILE"],
        ["policy", "set", "FILE", *NOWHERE],
        ["status", "--socket", "DIRECTORY/s"],
        ["status", "--config", "FILE"],
    ],
    ids=" ".join,
)
def test_without_permission(schedbridge, tmp_path, words):
    """As an ordinary user, in this process: what is imported need not be readable then."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file.yaml").write_text("policy: easy\n")
    secret.chmod(0o700)
    words = [
        word.replace("FILE", str(secret / "file.yaml")).replace("DIRECTORY", str(secret))
        for word in words
    ]
    schedbridge(*words)  # imports all it needs, which the other one may not be able to read
    os.seteuid(65534)
    try:
        err = refused(schedbridge, *words)
    finally:
        os.seteuid(0)
    assert str(tmp_path)[:20] in err.replace("\n", "")
