# SPDX-License-Identifier: Apache-2.0
"""Parses command lines of the pages with the parsers of the programs themselves; runs nothing.

A sentence may name a command by its first words, so that required arguments, and the value of the
last option, may be missing. A word in capitals stands for any value, `a|b` for two command lines,
and `[word]` may be left out.
"""

import importlib
import itertools
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import click
import typer

from bridge.cli.main import commands, module_of
from tests.documents.pages import ROOT
from tests.release.suites import SUITES

ALONE = ("--help", "-h", "--version", "-V")
"""Options of `schedbridge` itself."""
VALUE = "VALUE"


def problems(text: str) -> list[str]:
    """What is wrong with a command line, each thing once; empty: it parses."""
    try:
        words = shlex.split(re.sub(r"\[([^]\s]+)\]", r"\1", text))
    except ValueError as error:
        return [f"is no command line: {error}"]
    program = words[0]
    if program not in PARSERS:
        there = program.startswith("scripts/") and (ROOT / program).is_file()
        if not there:
            return [f"there is no program {program}"]
        return [f"nothing here parses the words after {program}"] if words[1:] else []
    found: list[str] = []
    for line in alternatives(words[1:]):
        found += [problem for problem in PARSERS[program](line) if problem not in found]
    return found


def alternatives(words: Sequence[str]) -> Iterator[list[str]]:
    """The command lines that `grow|shrink JOB` stands for."""
    choices = []
    for word in words:
        name, equals, values = word.rpartition("=")
        choices.append([f"{name}{equals}{value}" for value in values.split("|")])
    yield from map(list, itertools.product(*choices))


def command_named(name: str) -> click.Command:
    """A command as typer makes it."""
    _, attribute, _ = commands()[name]
    found = getattr(importlib.import_module(module_of(name)), attribute)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name.rsplit(maxsplit=1)[-1])(found)
        found = app
    return typer.main.get_command(found)


def options_of(command: click.Command) -> set[str]:
    """All names of its options."""
    given = {"--help", "-h"}
    for parameter in command.params:
        given |= {*parameter.opts, *parameter.secondary_opts}
    return given


def _schedbridge(words: list[str]) -> list[str]:
    if not words or words[0].startswith("-"):
        return [f"there is no option {word}" for word in words if word not in ALONE]
    prefix = ""
    if words[0] == "lab":
        if words[1:2] in ([], ["--help"]):
            return []
        prefix, words = "lab ", words[1:]
    name = prefix + words[0]
    if name not in commands():
        return [f"there is no command {name}"]
    command, words = command_named(name), words[1:]
    inside: dict[str, click.Command] | None = getattr(command, "commands", None)
    if inside is not None and words and not words[0].startswith("-"):
        if words[0] not in inside:
            return [f"there is no command {name} {words[0]}"]
        command, words = inside[words[0]], words[1:]
    if words in (["--help"], ["-h"]):
        return []
    said = _parsed(command, words)
    if said and words[-1].startswith("-") and not _parsed(command, [*words, VALUE]):
        return []
    return [said] if said else []


def _parsed(command: click.Command, words: list[str]) -> str:
    """What typer says of these words; nothing of what is not given."""
    context = command.context_class(command, info_name=command.name, **command.context_settings)
    try:
        given, rest, _ = command.make_parser(context).parse_args(args=list(words))
        for parameter in command.params:
            value = given.get(parameter.name)
            if isinstance(value, list | tuple):
                value = type(value)(one for one in value if not _stands_for_any(one))
            if value and not _stands_for_any(value):
                with context.scope(cleanup=False):
                    parameter.process_value(context, value)
        if rest and not context.allow_extra_args:
            return f"nothing takes {' '.join(rest)}"
    except Exception as error:  # typer's classes of errors are private
        said = getattr(error, "format_message", None)
        if said is None:
            raise
        return str(said())
    return ""


def _stands_for_any(value: object) -> bool:
    return isinstance(value, str) and value.isupper()


def _cluster(words: list[str]) -> list[str]:
    given = words[: words.index("--")] if "--" in words else words
    if not given or given in (["--help"], ["-h"]):
        return []
    of_cluster = _commands_of_cluster()
    numbered = ["1" if _stands_for_any(word) else word for word in given]
    try:
        of_cluster._parser().parse_args(numbered)
    except of_cluster.Trouble as trouble:
        said = str(trouble).partition(" (try")[0]
        without_value = given[-1].startswith("-") and said.endswith("expected one argument")
        any_choice = numbered != given and "invalid choice: '1'" in said
        return [] if without_value or any_choice else [said]
    return []


def _commands_of_cluster() -> ModuleType:
    if (path := str(ROOT / "docker")) not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module("cluster.commands")


def _test(words: list[str]) -> list[str]:
    """`scripts/test` hands what follows the suite's name to pytest."""
    suites = {"ci", "release", "--help", "-h", *(suite.name for suite in SUITES)}
    return [f"there is no suite {word}" for word in words[:1] if word not in suites]


PARSERS: dict[str, Callable[[list[str]], list[str]]] = {
    "schedbridge": _schedbridge,
    "scripts/cluster": _cluster,
    "scripts/demo": lambda words: _schedbridge(["lab", "demo", *words]),
    "scripts/test": _test,
}
"""What is wrong with the words after a program's name, by program."""
