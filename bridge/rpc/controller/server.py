# SPDX-License-Identifier: Apache-2.0
"""gRPC around the cycles: the controller's servicer, health and reflection."""

import functools
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bridge.errors import BridgeError, ConfigError
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import operator_pb2, scheduler_pb2_grpc
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.transport.status_codes import code_of

_log = logging.getLogger(__name__)

S = TypeVar("S")
Q = TypeVar("Q")
R = TypeVar("R")

SCHEDULER: Final = pb.DESCRIPTOR.services_by_name["Scheduler"].full_name
OPERATOR: Final = operator_pb2.DESCRIPTOR.services_by_name["Operator"].full_name


def answering(
    method: Callable[[S, Q, grpc.ServicerContext], R],
) -> Callable[[S, Q, grpc.ServicerContext], R]:
    """Makes a servicer's method answer errors with their code and one line."""

    @functools.wraps(method)
    def answer(self: S, request: Q, context: grpc.ServicerContext) -> R:
        try:
            return method(self, request, context)
        except BridgeError as error:
            _log.warning("%s is refused: %s", method.__name__, error)
            context.abort(code_of(error), str(error))
        except Exception as error:
            if context.code() is None:  # not an abort of the method itself
                _log.exception("%s failed", method.__name__)
                context.abort(
                    grpc.StatusCode.INTERNAL, f"{type(error).__name__}: see the service's log"
                )
            raise
        raise AssertionError("abort raises")

    return answer


class Scheduler(scheduler_pb2_grpc.SchedulerServicer):  # type: ignore[misc]
    """The controller's service."""

    def __init__(self, cycles: Cycles) -> None:
        self._cycles = cycles

    @answering
    def Hello(self, request: pb.HelloRequest, context: grpc.ServicerContext) -> pb.HelloReply:  # noqa: N802
        del context
        return self._cycles.greet(request)

    @answering
    def Cycle(self, request: pb.CycleRequest, context: grpc.ServicerContext) -> pb.CycleReply:  # noqa: N802
        return self._cycles.run(request, context.is_active, context.time_remaining())


class Server:
    """One gRPC server with health and reflection."""

    def __init__(self, name: str, *, workers: int, message_mib: int) -> None:
        size = message_mib << 20
        self._name = name
        self._options = [
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
            # Bandwidth probing costs two pings per call and is useless on one machine.
            ("grpc.http2.bdp_probe", 0),
        ]
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix=name)
        self._server: grpc.Server | None = None
        self._health = health.HealthServicer()

    def start(
        self,
        register: Callable[[grpc.Server], None],
        services: Iterable[str],
        *,
        socket: str,
    ) -> None:
        """Begins to serve.

        Args:
            register: adds the servicers.
            services: their full names.
            socket: path of the private Unix socket to listen at.

        Raises:
            ConfigError: listening failed.
        """
        server = grpc.server(self._pool, options=self._options)
        register(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = tuple(services)
        reflection.enable_server_reflection(
            (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        try:
            server.add_insecure_port(f"unix:{socket}")
        except RuntimeError as error:
            raise ConfigError(self._name, f"cannot listen at {socket}") from error
        server.start()
        self._server = server
        for service in ("", *names):
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace_s: float) -> None:
        """Reports NOT_SERVING, gives running calls some time to finish, and stops."""
        if self._server is None:
            return
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait(grace_s + 1)  # a cycle may never end
        self._pool.shutdown(wait=False)


def add_scheduler(cycles: Cycles) -> Callable[[grpc.Server], None]:
    """Registers the controller's service."""
    return functools.partial(scheduler_pb2_grpc.add_SchedulerServicer_to_server, Scheduler(cycles))
