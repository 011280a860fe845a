# SPDX-License-Identifier: Apache-2.0
"""Commands within sentences and tables: do they, their options and values exist?"""

import importlib
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import click
import typer

from bridge.cli.main import commands, module_of
from tests.documents.marks import Run
from tests.documents.pages import PAGES, ROOT, Inline, Page, read

TABLES = {
    "docs/EXPERIMENTS.md": ("lab experiment", "lab experiment-report"),
    "docs/GENERATE.md": ("lab generate",),
    "docs/IMPORT.md": ("lab import",),
    "docs/SIMULATOR.md": ("lab simulate",),
}
"""Pages whose tables of options (in their first column) are those of these commands."""

OTHERS = "|".join(
    (
        "sbatch", "srun", "salloc", "scancel", "scontrol", "squeue", "sinfo", "sacct", "sacctmgr",
        "qsub", "qmgr", "qstat", "qrun", "qdel", "systemctl", "pip", "apt-get", "openssl", "make",
        "kill", "docker", "mpirun",
    )
)  # fmt: skip
"""Programs whose commands the pages name."""

ALONE = ("--help", "-h", "--version", "-V")
"""Options of `schedbridge` itself."""


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
        if prefix + name not in commands():
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
    lacking = [f"there is no option {option}" for option in named if option not in known]
    return lacking + _wrong_values(command, own)


def _wrong_values(command: click.Command, words: list[str]) -> list[str]:
    """Values that an option does not take; a word in capitals stands for any."""
    choices = {
        name: named
        for parameter in command.params
        if (named := _choices(getattr(parameter, "type_descriptor", None)))
        for name in parameter.opts
    }
    given = [tuple(word.split("=", 1)) for word in words if "=" in word]
    found = []
    for option, value in (*given, *itertools.pairwise(words)):
        for one in value.rstrip(",;.").split("|"):
            if option in choices and not one.isupper() and one not in choices[option]:
                found.append(f"{option} takes {', '.join(choices[option])}, not {one}")
    return found


def _choices(described: Any) -> list[str]:
    """The values of an option that takes one of a few; none of any other option."""
    annotation = getattr(described, "annotation", None)
    kinds = [annotation, *get_args(annotation)]  # an option that may be left out is a union
    return [str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]


def commands_in(page: Page) -> Iterator[Inline]:
    """The spans that are commands of schedbridge."""
    for span in page.inlines:
        if re.match(r"schedbridge [a-z-]", span.text):
            yield span


def commands_of_others(page: Page) -> Iterator[Inline]:
    """The spans that are commands of other programs, with a word after the program's name."""
    for span in page.inlines:
        if re.match(rf"(?:{OTHERS}|scripts/[a-z-]+) \S", span.text):
            yield span


def not_in_blocks(spans: Iterable[Inline]) -> Iterator[Inline]:
    """Those commands that no block of any page runs, each once."""
    run = {
        " ".join(line.removeprefix("$ ").split())
        for path in PAGES
        for block in read(path).blocks
        if isinstance(block.mark, Run)
        for line in block.text.splitlines()
    }
    seen = set()
    for span in spans:
        known = any(re.match(rf"{re.escape(span.text)}(?:$|[ ;|])", line) for line in run)
        if not known and span.text not in seen:
            seen.add(span.text)
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
