# SPDX-License-Identifier: Apache-2.0
"""Commands within sentences and tables: is there such a command, and has it these options?"""

import importlib
import re
import shlex
from collections.abc import Iterator

import click
import typer

from bridge.cli.main import COMMANDS, module_of
from tests.documents.pages import ROOT, Inline, Page

TABLES = {
    "docs/EXPERIMENTS.md": ("lab experiment", "lab experiment-report"),
    "docs/GENERATE.md": ("lab generate",),
    "docs/IMPORT.md": ("lab import",),
    "docs/SIMULATOR.md": ("lab simulate",),
}
"""Pages whose tables of options (in their first column) are those of these commands."""

ALONE = ("--help", "-h", "--version", "-V")
"""Options of `schedbridge` itself."""


def command_named(name: str) -> click.Command:
    """A command as typer makes it."""
    _, attribute, _ = COMMANDS[name]
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


def problems(text: str) -> list[str]:
    """What is wrong with a command line that begins with `schedbridge`."""
    try:
        words = shlex.split(text)[1:]
    except ValueError as error:
        return [f"is no command line: {error}"]
    if not words or words[0].startswith("-"):
        return [f"no option {word}" for word in words if word not in ALONE]
    in_lab = words[0] == "lab"
    if in_lab and words[1:2] in ([], ["--help"]):
        return []
    prefix, words = ("lab ", words[1:]) if in_lab else ("", words)
    found: list[str] = []
    for name in words[0].split("|"):
        if prefix + name not in COMMANDS:
            found.append(f"there is no command {prefix}{name}")
            continue
        found += _wrong_words(command_named(prefix + name), words[1:])
    return found


def _wrong_words(command: click.Command, words: list[str]) -> list[str]:
    inside: dict[str, click.Command] | None = getattr(command, "commands", None)
    if inside is not None:
        if not words or words[0].startswith("-"):
            return _wrong_options(command, words)
        found = []
        for name in words[0].split("|"):
            inner = inside.get(name)
            if inner is None:
                found.append(f"there is no command {name}")
            else:
                found += _wrong_words(inner, words[1:])
        return found
    return _wrong_options(command, words)


def _wrong_options(command: click.Command, words: list[str]) -> list[str]:
    own = words[: words.index("--")] if "--" in words else words
    known = options_of(command)
    named = (word.split("=")[0].rstrip(",;.") for word in own if word.startswith("--"))
    return [f"there is no option {option}" for option in named if option not in known]


def commands_in(page: Page) -> Iterator[Inline]:
    """The spans that are commands of schedbridge."""
    for span in page.inlines:
        if re.match(r"schedbridge [a-z-]", span.text):
            yield span


def listed_options(text: str) -> Iterator[tuple[int, str]]:
    """The options in the first columns of a page's tables, with their lines."""
    for number, line in enumerate(text.splitlines(), 1):
        first = line.split(" | ")[0]
        if re.match(r"\| `--", first):
            for span in re.findall(r"`(--[^`]*)`", first):
                yield number, _option(span)


def options_in(page: Page, heading: str = "") -> Iterator[tuple[int, str]]:
    """The options that a page names, from a heading on, with their lines."""
    lines = (ROOT / page.path).read_text().splitlines()
    start = lines.index(heading) + 1 if heading else 0
    for span in page.inlines:
        if span.line > start and span.text.startswith("--"):
            yield span.line, _option(span.text)


def _option(text: str) -> str:
    return text.split(maxsplit=1)[0].split("=", maxsplit=1)[0]
