# SPDX-License-Identifier: Apache-2.0
"""Names of others send no control sequences to an operator's terminal."""

import ast
import io
import json
from pathlib import Path

from rich.table import Table

import bridge.cli.operators
from bridge.cli.operators.asking import console, print_json, say
from bridge.rpc.pb import operator_pb2 as pb

ODD = ("a\x1b[2Jb", "c\x9b31m\x07\rd\u202e", "e\x1b]0;title\x07")
CONTROLS = {"\x1b", "\x9b", "\x07", "\r", "\u202e"}


def test_lines_and_tables_print_no_control_characters_of_names(capsys, monkeypatch):
    table = Table("job", "user", title=ODD[0])
    table.add_row(ODD[0], ODD[1])
    table.add_row(ODD[2], "ann")
    screen = console()
    screen.print(table)
    screen.print(ODD[1])
    say("\n".join(ODD))
    out = capsys.readouterr().out
    assert not CONTROLS & {*out}
    for text in ("a?[2Jb", "c?31m", "e?]0;title", "ann"):
        assert text in out, text
    assert out.splitlines()[-3:] == ["a?[2Jb", "c?31m??d?", "e?]0;title?"]


def test_on_a_terminal_only_the_console_speaks(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = console()
    screen.file, screen._force_terminal, screen._color_system = io.StringIO(), True, None
    table = Table("job", title=ODD[0])
    for name in ODD:
        table.add_row(name)
    screen.print(table)
    shown = screen.file.getvalue()
    for name in ODD:
        assert name not in shown
    assert "\x1b[2J" not in shown
    assert "\x9b" not in shown


def test_json_of_odd_names_is_valid(capsys):
    print_json(pb.PlanReply(jobs=[pb.PlannedJob(job_id="1", user=name) for name in ODD]))
    out = capsys.readouterr().out
    assert not CONTROLS & {*out}
    assert [job["user"] for job in json.loads(out)["jobs"]] == list(ODD)


def test_operators_commands_print_by_these_alone():
    folder = Path(bridge.cli.operators.__file__).parent
    found = [
        f"{path.name}:{call.lineno}"
        for path in sorted(folder.glob("*.py"))
        if path.name != "asking.py"
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and (call.func.id == "Console" or (call.func.id == "print" and not call.keywords))
    ]
    assert found == []
