# SPDX-License-Identifier: Apache-2.0
"""`schedbridge changes`: who changed what, when, from what to what, and with which result."""

import time
from typing import Annotated

import typer

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    print_json,
    shown,
    when,
)
from bridge.cli.operators.times import instant_s

_MAX_CHANGES = 1000


def changes(
    config: ConfigOption = None,
    socket: SocketOption = None,
    number: Annotated[
        int,
        typer.Option(
            "-n",
            "--number",
            min=1,
            max=_MAX_CHANGES,
            help="The last so many of administrators, and of others.",
        ),
    ] = 20,
    since: Annotated[
        str, typer.Option(help="None before this instant, as in 2026-12-24T18:00.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List the last changes, refused ones included, oldest first (administrators)."""
    since_s = instant_s(since, int(time.time())) if since else 0
    with ask(config, socket) as service:
        reply = service.changes(number, since_s)
    if as_json:
        print_json(reply)
        return
    if not reply.changes:
        console().print("no change is logged")
    for each in reply.changes:
        author = shown(each.user) + (f" (uid {each.uid})" if each.uid >= 0 else "")
        console().print(f"{when(each.at_s)}  {each.method} by {author}: {shown(each.result)}")
        for name, text in (("from", each.before), ("to", each.after)):
            lines = text.splitlines()
            if lines:
                console().print("\n".join(f"    {name:4} {shown(line)}" for line in lines))
