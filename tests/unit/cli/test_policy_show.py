# SPDX-License-Identifier: Apache-2.0
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bridge.cli.operators import policy
from bridge.rpc.pb import operator_pb2 as pb

REPLY = pb.PolicyReply(
    yaml="name: easy\n",
    choices=["preset: easy, own, research", "order: fcfs"],
    presets=[
        pb.PresetSummary(name="easy", summary="first come, first served"),
        pb.PresetSummary(name="own\x1b[2J", summary="ours\nor not"),
    ],
)


@pytest.fixture
def show(monkeypatch):
    @contextmanager
    def ask(*_):
        yield SimpleNamespace(policy=lambda: REPLY)

    monkeypatch.setattr(policy, "ask", ask)

    def run(*words):
        result = CliRunner().invoke(policy.app, ["show", *words], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    return run


def test_the_presets_for_production_have_a_line_each(show):
    text = show()
    assert "#   easy" in text
    assert "first come, first served" in text
    assert "research" not in text
    assert "--all" in text
    assert "\x1b" not in text


def test_all_names_are_listed_on_request(show):
    assert "preset: easy, own, research" in show("--all")


def test_json_has_both(show):
    text = show("--json")
    assert '"summary": "first come, first served"' in text
    assert "order: fcfs" in text
