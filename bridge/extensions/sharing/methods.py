# SPDX-License-Identifier: Apache-2.0
"""The method of `schedbridge.v1.Operator` on sharing: who may request what, and what is logged."""

from collections.abc import Mapping

from bridge.extensions.operators_port import OperatorMethods
from bridge.extensions.sharing.service_part import COSCHEDULING, EXPORTED, SHOWN
from bridge.rpc.operators.extension_methods import Looking, ServedChange
from bridge.rpc.pb import coscheduling_pb2 as pb

_Order = pb.CoschedulingRequest


async def _shown(looking: Looking, request: pb.CoschedulingRequest) -> bytes:
    if request.order == _Order.EXPORT:
        [answer] = await looking.ask(EXPORTED, b"")
    else:
        user = "" if looking.who.admin else looking.who.name
        [answer] = await looking.ask(SHOWN, user.encode(errors="replace"))
    return bytes(answer)


async def _before(looking: Looking) -> str:
    reply = pb.CoschedulingReply.FromString(await _shown(looking, _Order()))
    state = f"off since {reply.off_since_s}" if reply.off_since_s else "on"
    return f"{state}, {len(reply.pairs)} pairs learnt"


class SharingMethods(OperatorMethods):
    """See `bridge.extensions.operators_port.OperatorMethods`."""

    changes: Mapping[str, ServedChange] = {
        COSCHEDULING: ServedChange(
            _Order,
            purpose="switch co-scheduling, or export or import what was learnt",
            looks=lambda request: request.order in (_Order.SHOW, _Order.EXPORT),
            look=_shown,
            before=_before,
            for_users=lambda request: request.order == _Order.SHOW,
        )
    }
