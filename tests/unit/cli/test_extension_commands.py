# SPDX-License-Identifier: Apache-2.0
"""Commands of strangers' packages, of which some are broken."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from bridge.cli import extension_commands
from bridge.cli.extension_commands import GROUP, ExtensionCommand


def paint():
    print("painted")


def draw():
    print("drawn")


OFFERED = {
    "paint": ExtensionCommand(__name__, "paint", "Paint the nodes."),
    "draw": ExtensionCommand(__name__, "draw", "Draw the nodes."),
    "status": ExtensionCommand(__name__, "draw", "Stand for another command."),
    "lines": ExtensionCommand(__name__, "draw", "Two\nlines."),
    "text": "a text",
}


@pytest.fixture
def offered(monkeypatch):
    points = [EntryPoint("gone", "no_such_module_anywhere:X", GROUP)]
    for name, command in OFFERED.items():
        module = ModuleType(f"command_{name}")
        module.COMMAND = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        points.append(EntryPoint(name, f"{module.__name__}:COMMAND", GROUP))
    monkeypatch.setattr(extension_commands, "entry_points", lambda group: points)
    extension_commands.extension_commands.cache_clear()
    yield
    extension_commands.extension_commands.cache_clear()


def test_they_are_listed_and_run(offered, schedbridge):
    _, out, _ = schedbridge("--help")
    assert "\n  paint              Paint the nodes.\n" in out
    assert "\n  draw               Draw the nodes.\n" in out
    assert schedbridge("paint")[:2] == (0, "painted\n")
    assert schedbridge("draw")[:2] == (0, "drawn\n")


def test_none_takes_the_place_of_a_command(offered, schedbridge):
    _, out, _ = schedbridge("--help")
    assert "Stand for" not in out
    assert "drawn" not in schedbridge("status", "--help")[1]


def test_broken_ones_are_named_where_one_is_unknown(offered, schedbridge):
    code, _, problem = schedbridge("lines")
    assert code == 2
    for text in ("no command 'lines'", "'gone'", "lines needs three texts", "not str"):
        assert text in problem
