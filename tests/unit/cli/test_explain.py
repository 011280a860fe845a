# SPDX-License-Identifier: Apache-2.0
import json
from contextlib import contextmanager, suppress

import pytest

from bridge.cli.main import main
from bridge.cli.operators import explain as module
from bridge.dialect import dialect_named
from bridge.rpc.operators.explain import nothing_helps
from bridge.rpc.pb import operator_pb2 as pb

WORDS = dialect_named("").words


@pytest.fixture
def answer(monkeypatch):
    """What the service will answer."""
    reply = pb.ExplainReply(job=pb.PlannedJob(job_id="7", name="work", user="ann"))

    class Service:
        def explain(self, job_id):
            assert job_id == "7"
            return reply

    @contextmanager
    def ask(_config, _socket):
        yield Service()

    monkeypatch.setattr(module, "ask", ask)
    return reply


def printed(capsys, *options):
    with suppress(SystemExit):
        main(["explain", "7", *options])
    return capsys.readouterr().out


def test_changes_are_a_table(answer, capsys, monkeypatch):
    now_s = 1_900_000_000
    monkeypatch.setattr(module.time, "time", lambda: float(now_s))
    answer.lines.append("waits for job 3 of bob, running until 13:20:00 at the latest")
    start_s = now_s + 3700
    answer.changes.add(
        start_s=start_s, nodes=3, options="-N 3", text="with 3 nodes in place of 4\x1b"
    )
    out = printed(capsys)
    assert out.index("waits for job 3 of bob") < out.index("It could start earlier:")
    assert "in 1 h 1 min" in out
    assert "with 3 nodes in place of 4?" in out
    assert "-N 3" in out
    assert "In its way" not in out


def test_without_changes_there_is_no_table(answer, capsys):
    answer.lines.append(nothing_helps(WORDS))
    out = printed(capsys)
    assert nothing_helps(WORDS) in out
    assert "It could start earlier:" not in out


def test_json_has_chain_and_changes(answer, capsys):
    answer.chain.add(kind=pb.CHAIN_KIND_WAITING_JOB, until_s=90, shared_nodes=2).job.job_id = "3"
    answer.changes.add(start_s=50, time_limit_s=600, options="--time=0:10:00")
    answer.changes_known = True
    found = json.loads(printed(capsys, "--json"))
    (link,) = found["chain"]
    assert (link["kind"], link["until_s"]) == ("CHAIN_KIND_WAITING_JOB", 90)
    assert (link["shared_nodes"], link["job"]["job_id"]) == (2, "3")
    (change,) = found["changes"]
    assert (change["start_s"], change["time_limit_s"], change["nodes"]) == (50, 600, 0)
    assert found["changes_known"] is True
