# SPDX-License-Identifier: Apache-2.0
"""Common parts of the commands that query a running service: its address, and printing.

Names of others reach a terminal by `say`, `console` and `print_json` alone, which print no control
characters.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from bridge.errors import ConfigError
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import operator_pb2 as pb
from bridge.service import default_sockets
from bridge.units import format_duration, format_instant
from bridge.words import words_named

MAX = 2**32 - 1
"""The largest number in a request to the service."""

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="The service's configuration file, which contains its address."
    ),
]
SocketOption = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        help="The service's operator socket.",
        envvar="SCHEDBRIDGE_SOCKET",
        show_default=str(default_sockets.OPERATOR),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def ask(config: Path | None, socket: Path | None) -> OperatorClient:
    """Connects to the service's operator socket.

    Raises:
        ConfigError: the configuration cannot be read, or there is no such socket.
    """
    path = socket
    if path is None and config is not None:
        from bridge.service.config import load  # noqa: PLC0415 - it is slow

        path = load(config).operator.socket
    path = path or default_sockets.OPERATOR
    if not os.path.lexists(path):
        raise ConfigError(
            "", f"no service at {path}: start it with 'schedbridge serve', or give --socket PATH"
        )
    return OperatorClient(f"unix:{path.absolute()}")


class _SafeConsole(Console):
    """Prints no control characters but its own: any text may be a user's, or a controller's."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of a text or table."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_safe(segment.text), segment.style)


def say(text: str) -> None:
    """Prints lines; control characters in them become `?`."""
    print(_safe(text))


def _safe(text: str) -> str:
    return "\n".join(map(shown, text.split("\n")))


def console() -> Console:
    """Prints text; wide enough for a table when the output is not a terminal."""
    screen = _SafeConsole(highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:
        screen.width = 160
    return screen


def print_json(message: Message) -> None:
    """Prints a message with all its fields, numbers as numbers."""
    found = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    print(json.dumps(_numbers(message, found), indent=2))


def _numbers(message: Message, found: dict[str, Any]) -> dict[str, Any]:
    """Turns the strings by which protobuf's JSON writes 64-bit integers back into numbers."""
    for field in message.DESCRIPTOR.fields:
        value = found.get(field.name)
        if value is None:
            continue
        held = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = dict(held)
        elif field.message_type is not None and isinstance(value, list):
            found[field.name] = [_numbers(one, v) for one, v in zip(held, value, strict=True)]
        elif field.message_type is not None:
            found[field.name] = _numbers(held, value)
        elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
            found[field.name] = [int(v) for v in value] if isinstance(value, list) else int(value)
    return found


def when(at_s: int) -> str:
    """An instant as local time; empty for none."""
    if at_s == 0:
        return ""
    return format_instant(at_s, "%Y-%m-%d %H:%M:%S")


def until(at_s: int, now_s: int) -> str:
    """The time until an instant."""
    return "now" if at_s <= now_s else f"in {format_duration(at_s - now_s)}"


def shown(text: str) -> str:
    """Text of a user, safe for a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def add_job_columns(table: Table, dialect: str, last: str) -> None:
    """Adds the columns of `job_cells` and one more, in the words of a reply's dialect."""
    words = words_named(dialect)
    for name in ("job", "user", words.partition, "start", ""):
        table.add_column(name, overflow="ellipsis")
    table.add_column(f"{words.node}s", overflow="fold")
    table.add_column(last, overflow="ellipsis")


def job_cells(job: pb.PlannedJob, now_s: int | None = None) -> tuple[str, ...]:
    """A job as cells of a table: id, user, partition, start, in, nodes."""
    at = int(time.time()) if now_s is None else now_s
    start = when(job.start_s)
    wait = "running" if job.running else until(job.start_s, at) if job.start_s else ""
    nodes = f"{job.node_count}: {job.nodes}" if job.node_count else ""
    return shown(job.job_id), shown(job.user), shown(job.partition), start, wait, nodes
