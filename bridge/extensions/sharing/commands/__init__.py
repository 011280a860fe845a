# SPDX-License-Identifier: Apache-2.0
"""The commands `schedbridge coschedule`.

Imports the extension and, as all commands that ask a running service,
`bridge.cli.operators.asking`; here nothing of these, as `schedbridge --help` reads the entry point.
Start with `coschedule.py`.
"""

from typing import Final

from bridge.cli.extension_commands import ExtensionCommand

COSCHEDULE: Final = ExtensionCommand(
    "bridge.extensions.sharing.commands.coschedule",
    "app",
    "Show what was learnt of two jobs on a node; end sharing, or allow it again.",
)
