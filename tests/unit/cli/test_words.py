# SPDX-License-Identifier: Apache-2.0
"""plan, status and explain speak the words of the service's resource manager."""

import contextlib
from types import SimpleNamespace

import pytest

from bridge.cli.operators import explain, plan, status
from bridge.rpc.pb import operator_pb2 as pb

JOB = pb.PlannedJob(job_id="1.srv", user="ann", partition="workq", start_s=9000, nodes="n[1-2]",
                    node_count=2)  # fmt: skip
CASES = (("pbs", "queue", "vnodes"), ("slurm", "partition", "nodes"), ("", "partition", "nodes"),
         ("one-of-a-newer-service", "partition", "nodes"))  # fmt: skip


@pytest.mark.parametrize(("dialect", "queue", "nodes"), CASES)
def test_tables_have_the_words_of_the_dialect(monkeypatch, capsys, dialect, queue, nodes):
    service = SimpleNamespace(
        plan=lambda _: pb.PlanReply(now_s=1, jobs=[JOB], dialect=dialect),
        explain=lambda _: pb.ExplainReply(job=JOB, blockers=[JOB], dialect=dialect),
        status=lambda: pb.StatusReply(nodes=3, dialect=dialect),
    )
    for module in (plan, explain, status):
        monkeypatch.setattr(module, "ask", lambda *_: contextlib.nullcontext(service))
    plan.plan(50)
    explain.explain("1.srv")
    tables = capsys.readouterr().out
    words = {word for line in tables.splitlines() for word in line.replace("┃", " ").split()}
    assert {queue, nodes} <= words
    assert not words & ({"queue", "vnodes", "partition", "nodes"} - {queue, nodes})
    status.status()
    assert nodes in capsys.readouterr().out.split()
