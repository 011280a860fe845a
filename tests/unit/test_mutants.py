# SPDX-License-Identifier: Apache-2.0
"""Every planted fault still applies; `scripts/test mutants` tries them."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path

import pytest

from schedbridge_contracts.crosses import each
from tests.mutants import __main__ as trial
from tests.mutants import running
from tests.mutants.mutants import FILE, ROOT, Unfit, read
from tests.mutants.spreading import spread

SUITES, MUTANTS = read(FILE.read_text(encoding="utf-8"))
SMALL_TREE = {
    "bridge/core/empty": "",
    "rule.py": "LIMIT = 2\n",
    "first.py": "import rule\nassert rule.LIMIT == 2\n",
    "second.py": "import os\nimport rule\nif rule.LIMIT > 2:\n    os.kill(os.getpid(), 9)\n",
    "test_rule.py": "import rule\n\ndef test_rule():\n    assert rule.LIMIT == 2\n",
    "tests/shim/probe.c": "int main(void) { return 0; }\n",
    "tests/shim/Makefile": """
build/probe: probe.c
\tmkdir -p build && $(CC) -o $@ probe.c
run-probe: build/probe
\t./build/probe
""",
    "mutants.yaml": """
suites:
  first: [python, first.py]
  second: [python, second.py]
  collected: [pytest, -q, test_rule.py]
  in C: [make, -s, -C, tests/shim, run-probe]
  gone: [make, -s, -C, tests/shim, run-gone]
mutants:
  - {name: no C, file: tests/shim/probe.c, old: return 0, new: return zero, suites: [in C, first]}
  - {name: no Python, file: rule.py, old: "2", new: "(2", suites: [collected, first]}
  - {name: renamed, file: rule.py, old: MAXIMUM = 2, new: MAXIMUM = 3, suites: [first, second]}
  - {name: moved, file: rules.py, old: LIMIT = 2, new: LIMIT = 3, suites: [first, second]}
  - {name: seen in C, file: tests/shim/probe.c, old: "0", new: "1", suites: [in C, gone]}
  - {name: seen by two, file: rule.py, old: "2", new: "3", suites: [first, second]}
""",
}


@each(mutant={mutant.name: mutant for mutant in MUTANTS})
def test_a_mutant_applies_and_is_a_program(mutant):
    text = mutant.text()
    if mutant.file.endswith(".py"):
        compile(text, mutant.file, "exec")


def test_what_the_suites_run_is_there():
    """A suite that moved would notice nothing, which only a whole run would tell."""
    named = {
        word for words in SUITES.values() for word in words if word.startswith(("tests/", "sch"))
    }
    assert len(named) > 20
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_a_patch_that_does_not_apply_is_loud():
    mutant = dataclasses.replace(MUTANTS[0], old="what is nowhere")
    with pytest.raises(Unfit, match="renew the patch"):
        mutant.text()


def test_a_mutant_that_names_one_suite_is_refused():
    text = """
suites: {a: [pytest, x], b: [pytest, y]}
mutants: [{name: m, file: f, old: o, new: n, suites: [a]}]
"""
    with pytest.raises(Unfit, match="two suites"):
        read(text)


def run_small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    tree = tmp_path / "small"
    for name, text in SMALL_TREE.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    monkeypatch.setattr(running, "ROOT", tree)
    monkeypatch.setattr(trial, "FILE", tree / "mutants.yaml")
    monkeypatch.setattr("sys.argv", ["mutants", "--home", str(tmp_path / "home"), *words])
    return trial.main()


def test_a_mutant_that_cannot_be_tried_is_named_and_the_others_are_tried(
    tmp_path, monkeypatch, capsys
):
    done = tmp_path / "done.jsonl"
    words = "--trust", "--jobs", "1", "--done", str(done)
    assert run_small_tree(tmp_path, monkeypatch, *words, "no", "moved", "renamed", "two") == 1
    told = capsys.readouterr().out
    assert re.findall(r"^ +\d/5 (...) (.*?):", told, re.MULTILINE) == [
        ("BAD", "no C"), ("BAD", "no Python"), ("BAD", "renamed"), ("BAD", "moved"),
        ("ok ", "seen by two"),
    ]  # fmt: skip
    assert "zero" in told
    assert "rules.py is gone" in told
    assert told.endswith("5 mutants, 4 problems\n")
    assert [json.loads(line)["key"].split()[:3] for line in done.read_text().splitlines()] == [
        ["seen", "by", "two"]
    ]


def test_a_suite_that_cannot_be_built_notices_nothing_and_the_others_are_run(
    tmp_path, monkeypatch, capsys
):
    assert run_small_tree(tmp_path, monkeypatch, "--jobs", "2", "seen") == 1
    told = capsys.readouterr().out
    assert "suite 'gone' fails without a fault: make" in told
    assert "BAD seen in C: in C (" in told
    assert "ok  seen by two: first (AssertionError); second (SIGKILL)" in told
    assert told.endswith("2 mutants, 2 problems\n")


def test_items_are_spread_and_some_go_to_the_first_copy_only():
    copies = ["first", "second", "third"]
    found = dict(spread(copies, range(20), lambda copy, _: copy, lambda item: item % 4 == 0))
    assert set(found) == set(range(20))
    assert {found[item] for item in range(0, 20, 4)} == {"first"}


def test_an_attempt_that_fails_ends_all():
    with pytest.raises(ZeroDivisionError):
        list(spread(["first", "second"], [1, 0, 2], lambda _, item: 1 // item))
