# SPDX-License-Identifier: Apache-2.0
"""The methods of `schedbridge.v1.Operator` on power; what is told of a job; the page of events."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bridge.dialect import dialect_of
from bridge.extensions.operators_port import OperatorMethods
from bridge.extensions.power.corridor.entry_log import Wish
from bridge.extensions.power.operators.calibrate import calibrate_reply
from bridge.extensions.power.operators.event_page import event_page
from bridge.extensions.power.operators.method_names import CORRIDOR, CURVES, EVENTS
from bridge.extensions.power.operators.power_changes import group_of
from bridge.extensions.power.operators.power_source import measured_words
from bridge.extensions.power.operators.power_trial import trial
from bridge.extensions.power.operators.power_view import entries_of, power_reply
from bridge.extensions.power.rules import power_of
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.extension_methods import Look, Looking, PageChange, ServedChange
from bridge.rpc.operators.http_pages import HttpPages
from bridge.rpc.operators.queries import Asking, Read, published_of
from bridge.rpc.operators.view import View, unpack
from bridge.rpc.pb import operator_pb2 as pb


def _power(view: View, request: pb.PowerRequest, _: Asking) -> pb.PowerReply:
    return power_reply(view, published_of(view), request)


async def _calibrate(looking: Looking, _: pb.CalibrateRequest) -> bytes:
    view, told = await looking.view(), await looking.ask(CURVES, b"")
    rules, published = power_of(view.in_force.conditions.site), published_of(view)

    def answer() -> bytes:
        return calibrate_reply(rules, published, unpack(told)).SerializeToString()

    return await looking.compute(answer)


async def _trial(looking: Looking, request: pb.CorridorRequest) -> bytes:
    view = await looking.view()

    def answer() -> bytes:
        return trial(view, published_of(view), request, looking.who).SerializeToString()

    return await looking.compute(answer)


async def _bounds(looking: Looking) -> str:
    return json.dumps([asdict(entry) for entry in entries_of(await looking.view()).entered])


def _event_now(event: str, view: View) -> str:
    """The bounds that an event has; empty: none."""
    entered = entries_of(view).entered
    stand = [each for each in entered if each.group == group_of(event) and not each.removed_s]
    if not stand:
        return ""
    bounds = [[each.start_s, each.end_s, each.upper_w] for each in stand]
    return _event_text(event, stand[0].reason, bounds)


def _event_text(event: str, name: str, bounds: Sequence[Sequence[int | None]]) -> str:
    return f"{event} {name}: {json.dumps(bounds)}"


class PowerMethods(OperatorMethods):
    """See `bridge.extensions.operators_port.OperatorMethods`."""

    def lines(self, published: Published, row: int) -> Iterator[str]:
        """What a running job draws, and how that is known."""
        snapshot = published.snapshot
        running = snapshot.running
        if running.power_source[row]:
            yield (
                f"draws {running.measured_min_power_w[row]} to {running.measured_max_power_w[row]}"
                f" W on each {dialect_of(snapshot).words.node}:"
                f" {measured_words(running, row, snapshot.now_s)}"
            )

    def page(self, settings: Mapping[str, Any], change: PageChange) -> HttpPages:
        """The page of events of demand response."""

        async def carry(event: str, name: str, wishes: Sequence[Wish]) -> int:
            bounds = [[wish.start_s, wish.end_s, wish.upper_w] for wish in wishes]
            sendable = name.encode(errors="replace").decode()
            question = json.dumps([event, sendable, bounds]).encode()
            program = "a program with the token of power events"
            text = _event_text(event, name, bounds)
            return int(await change(program, EVENTS, question, partial(_event_now, event), text))

        return event_page(carry, Path(settings["token_file"]))

    reads: Mapping[str, Read] = {"Power": Read(pb.PowerRequest, _power, of_cycle=False)}
    looks: Mapping[str, Look] = {"Calibrate": Look(pb.CalibrateRequest, _calibrate)}
    changes: Mapping[str, ServedChange] = {
        CORRIDOR: ServedChange(
            pb.CorridorRequest,
            purpose="change the corridor of power",
            looks=lambda request: bool(request.dry_run),
            look=_trial,
            before=_bounds,
        )
    }
