# SPDX-License-Identifier: Apache-2.0
"""Nothing outside a dialect's folder knows a resource manager by its options and commands."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from bridge import dialect
from bridge.errors import ConfigError, SnapshotError
from bridge.model.job import Hold
from bridge.planning.explain.what_if import what_if
from bridge.planning.requests.amounts import Amounts
from bridge.registry import PRESETS, build
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import explain
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import WIRE_VERSION, Session
from bridge.safe_cycle.decider import Decider
from tests.builders import a_job, a_partition, a_reservation, a_running_job, a_snapshot
from tests.other_dialect import ARRAY

BRIDGE = Path(__file__).parents[2] / "bridge"
OWN = ("slurm/", "shim/", "sim/", "cli/", "rpc/pb/")
"""Folders that may know Slurm: its dialect, its plugin, its simulation, and the command line."""
KNOWN = {
    "dialect.py": "names the folder",
    "registry.py": "names of presets and of Slurm's priority order",
    "safe_cycle/decider.py": "name of a preset",
    "service/config.py": "names of presets; options of the plugins, in descriptions",
    "rpc/reported/decode_request.py": "what the wire says of a request is in Slurm's terms",
    "rpc/reported/session.py": "the same",
    "rpc/operators/reservations.py": "options of this package's commands",
    "training/placement.py": "options of this package's commands",
}
"""Files with such words, and why."""
WORDS = re.compile(r"[Ss]lurm|sbatch|salloc|srun|scontrol|squeue|sinfo|(?<![\w-])--[a-z]{3,}")


def texts(path: Path) -> list[str]:
    """Texts in code that are no docstrings."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_only_these_files_have_words_of_slurm():
    found = {
        name
        for path in BRIDGE.rglob("*.py")
        for name in [path.relative_to(BRIDGE).as_posix()]
        if not name.startswith(OWN) and any(map(WORDS.search, texts(path)))
    }
    assert found == set(KNOWN)


@pytest.fixture
def other(monkeypatch):
    monkeypatch.setitem(dialect.DIALECTS, "other", "tests.other_dialect:OTHER")
    yield "other"
    dialect.dialect_named.cache_clear()


def of(name, **settings):
    return dataclasses.replace(a_snapshot(**settings)(), dialect=name)


def test_a_dialect_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="'nqs' is none of slurm"):
        dialect.dialect_named("nqs")
    hello = pb.HelloRequest(wire_version=WIRE_VERSION, epoch=1, dialect="nqs")
    with pytest.raises(SnapshotError, match="dialect"):
        Session().greet(hello)


def test_a_controller_that_names_no_dialect_speaks_slurms():
    assert dialect.dialect_named("") is dialect.dialect_named("slurm")


def test_tasks_of_an_array_are_known_by_the_dialect(other):
    ids = ["7[1].srv", "8.srv", "9_1"]
    running = [a_running_job((at,), 100, id=job) for at, job in enumerate(ids)]
    for name, tasks in ((other, [1, 0, 0]), ("slurm", [0, 0, 1])):
        snapshot = of(name, nodes=4, running=running)
        assert Amounts(snapshot).of_running()[:, -1].tolist() == tasks


def test_users_are_told_in_the_words_of_their_resource_manager(other):
    jobs = [a_job(id=f"7{ARRAY}", hold=Hold.HELD, array_tasks=2), a_job(5)]
    snapshot = of(other, nodes=4, jobs=jobs, partitions=[a_partition(nodes=range(4), up=False)])
    decided = Decider(build(PRESETS["slurm-like"])).decide(snapshot)
    published = Published(snapshot, decided, NodeIndex(snapshot.nodes.names))
    array = explain(published, "7[1].srv")
    assert array is not None
    assert any("release it with 'qrls'" in line for line in array.lines)
    assert explain(published, "8[1].srv") is None
    reasons = {str(snapshot.jobs.id[job]): reason for job, reason in
               zip(decided.job.tolist(), decided.reasons, strict=True)}  # fmt: skip
    assert reasons["2"].text == "queue batch is down"


def test_what_helps_is_told_as_options_of_the_resource_manager(other):
    snapshot = of(
        other,
        nodes=2,
        jobs=[a_job(limit_s=10_800)],
        running=[a_running_job(nodes=(0,), end_s=18_000)],
        reservations=[a_reservation([1], 7_205, 18_000)],
    )
    plan = Decider(build(PRESETS["openccs"])).decide(snapshot)
    (change,) = what_if(snapshot, plan, 0)
    assert change.options == "-l walltime=7205"
