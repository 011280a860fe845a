# SPDX-License-Identifier: Apache-2.0
"""Commands of extensions: objects at the entry points of the group `schedbridge.commands`.

    [project.entry-points."schedbridge.commands"]
    coschedule = "bridge.extensions.sharing.commands:COSCHEDULE"

The name is the command's. `schedbridge --help` loads all of these objects, so their modules import
next to nothing.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from bridge.entry_points import loaded

GROUP: Final = "schedbridge.commands"


@dataclass(frozen=True)
class ExtensionCommand:
    """A command.

    Attributes:
        module: imported when the command is called.
        attribute: a function or a typer app there.
        summary: a line for --help.
    """

    module: str
    attribute: str
    summary: str


@cache
def extension_commands() -> tuple[dict[str, ExtensionCommand], tuple[str, ...]]:
    """Returns the commands by their names, and a sentence for each that cannot be used."""
    problems: list[str] = []
    found = loaded(entry_points(group=GROUP), ExtensionCommand, _check, problems)
    return dict(found), tuple(problems)


def _check(name: str, command: ExtensionCommand) -> None:
    """Raises ValueError if a command, which a stranger wrote, is malformed."""
    texts = (command.module, command.attribute, command.summary)
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ValueError(f"the command {name:.60} needs three texts of a line each")
