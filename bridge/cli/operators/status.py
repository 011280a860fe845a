# SPDX-License-Identifier: Apache-2.0
"""`schedbridge status`: the state of the service and its controller."""

from rich.table import Table

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    print_json,
    shown,
)
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import format_duration
from bridge.words import words_named


def status(
    config: ConfigOption = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """Show the state of the service and its controller.

    Exit code 1 if the service does not answer.
    """
    with ask(config, socket) as service:
        reply = service.status()
    if as_json:
        print_json(reply)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in _lines(reply):
        table.add_row(name, value)
    console().print(table)


def _lines(reply: pb.StatusReply) -> list[tuple[str, str]]:
    silent_s = reply.since_last_cycle_s
    called = "has not called yet"
    if silent_s >= 0:
        called = f"{shown(reply.controller)}, cluster {shown(reply.cluster)}"
        called += f"; last call {format_duration(silent_s)} ago"
    lines = [
        ("service", f"{reply.service}, up {format_duration(reply.uptime_s)}"),
        ("policy", shown(reply.policy)),
        ("controller", called),
        (
            "cycles",
            f"{reply.cycles}; last {reply.cycle_ms_last:.1f} ms, "
            f"99 % within {reply.cycle_ms_p99:.1f} ms",
        ),
        (
            "jobs",
            f"{reply.jobs_pending} waiting, {reply.jobs_planned} of them planned; "
            f"{reply.jobs_running} running ({reply.jobs_running - reply.jobs_malleable} rigid, "
            f"{reply.jobs_malleable} malleable)",
        ),
        (
            f"{words_named(reply.dialect).node}s",
            f"{reply.nodes}, {reply.nodes_usable} usable",
        ),
        ("decisions", _counts(reply.decisions)),
        ("refused", _counts(reply.refusals)),
    ]
    controller = reply.controller_status
    if controller.fallbacks:
        spent = format_duration(controller.fallback_s)
        why = f" ({shown(controller.fallback_reason)})" if controller.fallback_reason else ""
        lines.append(("fallback", f"{controller.fallbacks} times, {spent} in all{why}"))
    if controller.round_trip_ms:
        lines.append(
            (
                "seen there",
                f"round trip {controller.round_trip_ms:.1f} ms, "
                f"longest lock {controller.lock_ms_max:.1f} ms",
            )
        )
    if reply.unknown_resources:
        names = ", ".join(shown(name) for name in reply.unknown_resources)
        lines.append(("rules", f"have no effect on what the cluster does not have: {names}"))
    lines += [("power", shown(loss)) for loss in reply.power_losses]
    lines += [("left out", shown(problem)) for problem in reply.left_out]
    if reply.policy_failures:
        lines.append(("failures", f"{reply.policy_failures} cycles fell back: see the log"))
    return lines


def _counts(counts: object) -> str:
    items = sorted(dict(counts).items())  # type: ignore[call-overload]
    return ", ".join(f"{value} {shown(name)}" for name, value in items if value) or "none"
