# SPDX-License-Identifier: Apache-2.0
"""The words of the house: standard terms in names, and docstrings that say more than the names."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

INSTEAD = {
    "least": "min",
    "most": "max",
    "asked": "requested",
    "fate": "result",
    "fates": "results",
    "outcome": "result",
    "outcomes": "results",
    "verdict": "result",
    "verdicts": "results",
    "warmth": "temperature",
    "wander": "exploration",
    "bend": "wait_exponent",
    "prints": "fingerprints",
}
"""A word of the dialect, and the standard term for it."""

ALLOWED = {
    # Parameters of policies, fields of records and of operators' replies: sites and programs write
    # and read them.
    "least_load", "least_nodes", "least_share", "most_candidates", "most_jobs", "most_load",
    "most_removed", "most_wait_s", "wander", "warmth",
    "outcome",  # a field of the lines between launchers and agents
}  # fmt: skip

ALLOWED_IN = {
    # An experiment ends in a verdict on each policy: the word of its page and of its JSON.
    "bridge/lab/experiments": {"verdict", "verdicts", "outcome"},
}


def tracked(*patterns):
    command = ["git", "ls-files", *patterns]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / line for line in found.splitlines() if "rpc/pb" not in line)
    return [path for path in paths if path.exists()]


def words_in(names):
    """`TEXT_MOST` and `TextMost` are the words text and most."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", names)]


def named(tree):
    """Names that a module gives to classes, functions, parameters, variables and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def dialect(name):
    """The words of the dialect in a name; "at least" and "at most" are English."""
    plain = re.sub("at_(least|most)", "", name, flags=re.IGNORECASE)
    return [] if name.strip("_") in ALLOWED else [w for w in words_in(plain) if w in INSTEAD]


def wrong_names(names, path):
    """A sentence for each name with a word of the dialect."""
    where = str(path.relative_to(ROOT))
    fine = set().union(*(words for at, words in ALLOWED_IN.items() if where.startswith(at)))
    for name in sorted(set(names)):
        for word in dialect(name):
            if word not in fine:
                yield f"{where}: {name}: say {INSTEAD[word]}, not {word}"


def test_names_are_standard_terms():
    wrong = []
    for path in tracked("bridge/*.py", "schedbridge_contracts/*.py"):
        wrong += wrong_names([*named(ast.parse(path.read_text())), path.stem], path)
    assert wrong == []


TEXT = re.compile(r'R"\(.*?\)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def test_bounds_of_the_wire_and_of_code_in_c_are_min_and_max():
    """What they call a result is the wire's name for it, which controllers know."""
    wrong = []
    for path in tracked("proto/*.proto", "bridge/shim/*.[ch]", "bridge/core/*.[ch]pp"):
        names = re.findall(r"[A-Za-z_]\w*", TEXT.sub("", path.read_text()))
        wrong += wrong_names([n for n in names if {"least", "most"} & {*words_in(n)}], path)
    assert wrong == []


SILENT = set(
    re.findall(
        "[a-z]+",
        """a all an and are as at by each every for from given gives had has have if in into is it
        its of on one or own returns some such tells that the their them there these they this those
        to was were what when where whether which who whose with yields""",
    )
)
FACT = re.compile(r"[`:;()\[\]\d/%*<>=\"]|\b(not?|only|first|last|other|same)\b", re.IGNORECASE)


def headers(tree, outer=""):
    """Classes and functions with a docstring, that docstring, and the names beside it."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from headers(node, outer)
            continue
        beside = node.bases if isinstance(node, ast.ClassDef) else [node.args, node.returns]
        parts = [part for one in beside if one is not None for part in ast.walk(one)]
        names = {str(getattr(one, at, "")) for one in parts for at in ("arg", "id", "attr")}
        if text := ast.get_docstring(node):
            yield node, text, " ".join({node.name, outer, *names})
        yield from headers(node, node.name if isinstance(node, ast.ClassDef) else outer)


def repeats(text, names):
    """Whether a text states nothing beyond the names beside it; endings of words do not count."""
    heads = {word[:4] for word in words_in(names)}
    said = (word for word in re.findall("[a-z]{2,}", text.lower()) if word not in SILENT)
    return not FACT.search(text) and all(word[:4] in heads for word in said)


def wrong_docstrings(path):
    """A sentence for each docstring from which a reader learns nothing."""
    for node, text, names in headers(ast.parse(path.read_text())):
        where = f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        if repeats(text, names):
            yield f"{where}: the docstring repeats the names: leave it out, or state a fact"
        if re.match(r"Rules? [\d, and]+( to \d+)?\.", text):
            yield f"{where}: say what the rule does, and its number in brackets"
        if re.match(r"Of\b|(All of them|Always|Both|For people|Likewise|Ours)\.", text):
            yield f"{where}: say what it is, not whose"
        if re.search(r"^    [\w*][\w, *]*: of\b", text, re.MULTILINE):
            yield f"{where}: say what a parameter is, not of what, or leave it out"


COMMANDS = ROOT / "bridge" / "cli"  # the docstring of a command is its help


def test_docstrings_say_more_than_names():
    """Slow: parses every program of the tree."""
    modules = (path for path in tracked("bridge/*.py") if not path.is_relative_to(COMMANDS))
    assert [wrong for path in modules for wrong in wrong_docstrings(path)] == []


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("least_time_s", "min"), ("MOST_NAMES", "max"), ("_asked", "requested"),
        ("ResizeOutcome", "result"), ("TextMost", "max"), ("at_most", None), ("almost", None),
        ("ask", None), ("most_jobs", None),
    ],
)  # fmt: skip
def test_a_word_of_the_dialect_is_found_as_a_part_of_a_name(name, word):
    assert [INSTEAD[one] for one in dialect(name)] == ([word] if word else [])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Takes the nodes.", True), ("Returns all free nodes of a job.", True),
        ("Of the job.", True), ("Rule 4.", True), ("Rules 4 to 6.", True), ("Both.", True),
        ("Frees the oldest.\n\n    Args:\n        job: of a user.\n    ", True),
        ("Frees nodes that are drained.", False), ("(n_nodes,) free.", False),
        ("Takes nodes within the limit (rule 4).", False),
    ],
)  # fmt: skip
def test_a_docstring_without_a_fact_is_found(tmp_path, monkeypatch, text, wrong):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "free.py"
    path.write_text(f'def take_free_nodes(job: str) -> None:\n    """{text}"""\n')
    assert bool(list(wrong_docstrings(path))) is wrong
