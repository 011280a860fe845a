# SPDX-License-Identifier: Apache-2.0
"""The page that says of every command of the pages whether it is run, only parsed, or neither."""

from collections.abc import Iterator

from tests.documents import inline, parsing, slurm_parsers
from tests.documents.marks import Drawing, Load, NotRun, Output, Run
from tests.documents.pages import PAGES, ROOT, Block, Inline, read

PATH = ROOT / "docs" / "results" / "documents.md"
COMMAND = "python -m tests.documents --list"
DATABASE = "not run: names a command of Slurm's database; reads no option without one"
SYSTEMD = "not run: needs systemd, which containers lack"
ADMINISTERS = "not run: names a command of Slurm or PBS, whose words the server reads"
FETCHES = "not run: fetches or builds packages"
UNREAD = {
    "sacct": DATABASE,
    "sacctmgr": DATABASE,
    "systemctl": SYSTEMD,
    **dict.fromkeys(("scontrol", "qsub", "qmgr", "qstat", "qrun", "qdel"), ADMINISTERS),
    **dict.fromkeys(("pip", "apt-get", "make"), FETCHES),
    "openssl": "not run: the file is the reader's own",
    "kill": "not run: names a signal, not a process",
    "docker": "not run: its containers are the reader's own",
    "mpirun": "not run: its hosts are the reader's own",
}
"""Why a command in a sentence is neither run nor parsed, by program."""


def page() -> str:
    """The page."""
    lines = [
        "# Commands of the pages: run, parsed, or not run", "",
        f"`{COMMAND}` writes this page, and a test compares it. How the commands are tested is in",
        "[the tests of the pages](../../tests/documents/README.md).", "",
        "## Blocks that are not run", "", "| page | commands | why |", "|---|---|---|",
        *(row for path in PAGES for row in _not_run(path)), "",
        "## All blocks", "", "| page | first line | what a test does |", "|---|---|---|",
        *(_row(b.page, _code(_first(b)), done_with(b)) for p in PAGES for b in read(p).blocks), "",
        "## Commands in sentences and tables", "",
        "`run` means that a block of the named page runs the command, perhaps with more words.", "",
        "| page | command | what a test does |", "|---|---|---|",
        *(row for path in PAGES for row in _sentences(path)),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def done_with(block: Block) -> str:
    """What becomes of a block."""
    match block.mark:
        case Run(lines=""):
            return f"run: {block.mark.run}"
        case Run():
            return f"put into a file, and used: {block.mark.run}"
        case Load():
            return f"loaded as {block.mark.load}"
        case Output():
            return "compared with what is printed"
        case NotRun():
            return "not run"
        case Drawing():
            return f"nothing to type: {block.mark.drawing}"
    return "nothing: it has no mark"


def done_with_span(span: Inline) -> str:
    """What becomes of a command in a sentence.

    Raises:
        KeyError: nobody has said why it is neither run nor parsed.
    """
    program = inline.program_of(span)
    if where := inline.run_in(span):
        return f"run: a block of {where}"
    if program in slurm_parsers.PROGRAMS:
        return "parsed by the program itself; not run: a part of a command"
    if program.startswith("scripts/") and program not in parsing.PARSERS:
        return "the program exists; not run: changes this machine"
    if program in parsing.PARSERS:
        return "parsed by the program's own parser; not run: " + (
            "its words in capitals are the reader's own"
            if any(word.isupper() for word in span.text.split())
            else "names the command"
        )
    return UNREAD[program]


def _not_run(path: str) -> Iterator[str]:
    for block in read(path).blocks:
        if isinstance(block.mark, NotRun):
            commands = "<br>".join(_code(line) for line in block.text.splitlines() if line.strip())
            yield _row(path, commands, block.mark.reason)


def _sentences(path: str) -> Iterator[str]:
    seen = {span.text: span for span in inline.commands_in(read(path))}
    for text, span in seen.items():
        yield _row(path, _code(text), done_with_span(span))


def _first(block: Block) -> str:
    return next((line for line in map(str.strip, block.text.splitlines()) if line.strip(".")), "")


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
