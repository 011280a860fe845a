# SPDX-License-Identifier: Apache-2.0
"""A client of the operators' interface of a running service."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

import grpc

from bridge.errors import BridgeError
from bridge.rpc.clients.options import OPTIONS
from bridge.rpc.pb import operator_pb2, operator_pb2_grpc
from bridge.rpc.transport.status_codes import error_of

Reply = TypeVar("Reply")

_ORDER_S = 60.0
"""Orders for the controller take at least until its next call."""


class OperatorClient:
    """Sends operators' requests to a running service."""

    def __init__(self, address: str, *, timeout_s: float = 10.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._stub = operator_pb2_grpc.OperatorStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def _call(
        self, method: Callable[..., Any], request: Any, timeout_s: float | None = None
    ) -> Any:
        try:
            return method(request, timeout=timeout_s or self._timeout_s)
        except grpc.RpcError as error:
            found: BridgeError = error_of(error, self._address)
            raise found from None

    def status(self) -> operator_pb2.StatusReply:
        """The state of the service."""
        reply: operator_pb2.StatusReply = self._call(
            self._stub.Status, operator_pb2.StatusRequest()
        )
        return reply

    def plan(self, limit: int = 0) -> operator_pb2.PlanReply:
        """The plan of the last cycle; at most `limit` jobs, 0: all."""
        reply: operator_pb2.PlanReply = self._call(
            self._stub.Plan, operator_pb2.PlanRequest(limit=limit)
        )
        return reply

    def explain(self, job_id: str) -> operator_pb2.ExplainReply:
        """Why a job waits."""
        reply: operator_pb2.ExplainReply = self._call(
            self._stub.Explain, operator_pb2.ExplainRequest(job_id=job_id)
        )
        return reply

    def topology(self) -> operator_pb2.TopologyReply:
        """The switches and their jobs."""
        reply: operator_pb2.TopologyReply = self._call(
            self._stub.Topology, operator_pb2.TopologyRequest()
        )
        return reply

    def policy(self, replacement: str = "") -> operator_pb2.PolicyReply:
        """The policy; with a replacement (preset or YAML) it is replaced first."""
        reply: operator_pb2.PolicyReply = self._call(
            self._stub.Policy, operator_pb2.PolicyRequest(set=replacement)
        )
        return reply

    def reserve(self, request: operator_pb2.ReserveRequest) -> operator_pb2.ReserveReply:
        """Makes a reservation; waits for the controller."""
        reply: operator_pb2.ReserveReply = self._call(
            self._stub.Reserve, request, timeout_s=_ORDER_S
        )
        return reply

    def unreserve(self, name: str) -> None:
        """Removes a reservation; waits for the controller."""
        self._call(
            self._stub.Unreserve, operator_pb2.UnreserveRequest(name=name), timeout_s=_ORDER_S
        )

    def record(self, min_queue: int = 0, wait_s: int = 10) -> operator_pb2.RecordReply:
        """Waits for a cycle and returns a recording of it; without one the reply is empty."""
        reply: operator_pb2.RecordReply = self._call(
            self._stub.Record,
            operator_pb2.RecordRequest(min_queue=min_queue, wait_s=wait_s),
            timeout_s=wait_s + self._timeout_s,
        )
        return reply

    def elastic(self, job_id: str = "") -> operator_pb2.ElasticReply:
        """Running malleable jobs, or one of them."""
        reply: operator_pb2.ElasticReply = self._call(
            self._stub.Elastic, operator_pb2.ElasticRequest(job_id=job_id)
        )
        return reply

    def change_width(self, request: operator_pb2.ChangeWidthRequest) -> None:
        """Requests another number of nodes of a running job, or to keep them."""
        self._call(self._stub.ChangeWidth, request)

    def power(self, span_s: int = 0, limit: int = 0) -> operator_pb2.PowerReply:
        """Bounds of system power, and estimates; 0: the next day, 10 jobs."""
        reply: operator_pb2.PowerReply = self._call(
            self._stub.Power, operator_pb2.PowerRequest(span_s=span_s, limit=limit)
        )
        return reply

    def calibrate(self) -> operator_pb2.CalibrateReply:
        """Idle and maximum power of nodes, fitted to the reports of metered ones."""
        reply: operator_pb2.CalibrateReply = self._call(
            self._stub.Calibrate, operator_pb2.CalibrateRequest()
        )
        return reply

    def corridor(self, request: operator_pb2.CorridorRequest) -> operator_pb2.CorridorReply:
        """Enters, removes or restores bounds of system power, or simulates that."""
        reply: operator_pb2.CorridorReply = self._call(
            self._stub.Corridor, request, timeout_s=_ORDER_S
        )
        return reply

    def of_extension(self, method: str, request: object, reply: type[Reply]) -> Reply:
        """Calls a method of an extension.

        Args:
            method: its name in the contract.
            reply: the type of its reply.
        """
        found = self._call(getattr(self._stub, method), request, timeout_s=_ORDER_S)
        if not isinstance(found, reply):
            raise TypeError(f"{method} has no reply of the type {reply.__name__}")
        return found

    def changes(self, limit: int = 0, since_s: int = 0) -> operator_pb2.ChangesReply:
        """The last changes that were requested; 0: 20."""
        reply: operator_pb2.ChangesReply = self._call(
            self._stub.Changes, operator_pb2.ChangesRequest(limit=limit, since_s=since_s)
        )
        return reply

    def accuracy(self, partition: str = "") -> operator_pb2.AccuracyReply:
        """Accuracy of announced starts; of one partition, or of each and of all together."""
        reply: operator_pb2.AccuracyReply = self._call(
            self._stub.Accuracy, operator_pb2.AccuracyRequest(partition=partition)
        )
        return reply
