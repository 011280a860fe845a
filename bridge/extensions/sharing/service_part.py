# SPDX-License-Identifier: Apache-2.0
"""What operators read and change of sharing, in the service's process."""

from collections.abc import Sequence
from typing import Final

from bridge.extensions.operators_port import ServicePart, ServiceParts
from bridge.extensions.sharing.operators import Coscheduling
from bridge.rpc.operators.requester import Requester
from bridge.rpc.pb import coscheduling_pb2 as pb
from bridge.rpc.transport.private_channel import Part
from bridge.service.extension_parts import ServiceContext

COSCHEDULING: Final = "Coscheduling"
"""A change, by the method of the same name."""
SHOWN: Final = "Shown"
"""A read of what a user may see, by the user's name; empty: an administrator."""
EXPORTED: Final = "Exported"
"""A read of all, with what was learnt as text."""


class SharingPart(ServicePart):
    """See `bridge.extensions.operators_port.ServicePart`."""

    def __init__(self, context: ServiceContext) -> None:
        """Knows nothing itself: what was learnt is in the state of the decider."""
        self._context = context
        self.reads = {SHOWN: self._shown, EXPORTED: self._exported}
        self.changes = {COSCHEDULING: self._changed}

    def _coscheduling(self) -> Coscheduling:
        context = self._context
        return Coscheduling(context.cycles(), context.decider, context.switch)

    def _shown(self, user: bytes) -> Sequence[Part]:
        return [self._coscheduling().shown(user.decode()).SerializeToString()]

    def _exported(self, _: bytes) -> Sequence[Part]:
        return [self._coscheduling().exported().SerializeToString()]

    def _changed(self, question: bytes, _: Requester) -> Sequence[Part]:
        request = pb.CoschedulingRequest.FromString(question)
        return [self._coscheduling().changed(request).SerializeToString()]


class SharingParts(ServiceParts):
    """See `bridge.extensions.operators_port.ServiceParts`."""

    def part(self, context: ServiceContext) -> SharingPart:
        """See `SharingPart`."""
        return SharingPart(context)
