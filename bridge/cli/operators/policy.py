# SPDX-License-Identifier: Apache-2.0
"""`schedbridge policy`: show the policy in force, and (administrators) replace it."""

from pathlib import Path
from typing import Annotated

import typer

from bridge import files
from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    print_json,
    say,
    shown,
)
from bridge.errors import ConfigError
from bridge.rpc.pb import operator_pb2 as pb

app = typer.Typer(add_completion=False, help="Show or change the policy.", no_args_is_help=True)


@app.command()
def show(
    every: Annotated[
        bool,
        typer.Option("--all", help="Also presets for research, and the choices of each stage."),
    ] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the policy in force, and what a site chooses from."""
    with ask(config, socket) as service:
        _print(service.policy(), as_json, every=every)


@app.command("set")
def set_policy(
    value: Annotated[
        str, typer.Argument(metavar="POLICY", help="A preset's name, or a YAML file with a policy.")
    ],
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put another policy in force from the next cycle on, until the service restarts."""
    path = Path(value)
    text = value
    if path.suffix or "/" in value:
        try:
            text = files.read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "no text file"
            raise ConfigError("", reason, file=value) from error
    with ask(config, socket) as service:
        _print(service.policy(text), as_json)


def _print(reply: pb.PolicyReply, as_json: bool, *, every: bool = False) -> None:
    if as_json:
        print_json(reply)
        return
    say(reply.yaml.removesuffix("\n"))
    for name in reply.unknown_resources:
        say(f"# the cluster has no resource {shown(name)}: rules on it have no effect")
    for problem in reply.left_out:
        say(f"# left out: {shown(problem)}")
    say("# presets; all choices: schedbridge policy show --all")
    width = max((len(shown(preset.name)) for preset in reply.presets), default=0)
    for preset in reply.presets:
        say(f"#   {shown(preset.name):{width}}  {shown(preset.summary)}")
    if every:
        say("# choices")
        for line in reply.choices:
            say(f"#   {line}")
