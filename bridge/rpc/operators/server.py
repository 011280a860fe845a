# SPDX-License-Identifier: Apache-2.0
"""The operators' gRPC service, in a separate process: many callers, few threads, equal shares.

The rules are in the files of its parts: `open_calls.py` (who calls, and how long calls wait),
`read_methods.py` and `change_methods.py`.
"""

import functools
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bridge.errors import BridgeError
from bridge.rpc.controller.server import OPERATOR
from bridge.rpc.operators.change_methods import ChangeMethods
from bridge.rpc.operators.newest_view import Views
from bridge.rpc.operators.open_calls import CallMethod, OpenCalls
from bridge.rpc.operators.queries import Refused
from bridge.rpc.operators.read_methods import ReadMethods
from bridge.rpc.transport.private_channel import Asker, RemoteRefusal
from bridge.rpc.transport.status_codes import code_of

_log = logging.getLogger(__name__)


class OperatorService(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All methods of `schedbridge.v1.Operator`.

    Every method is registered as a stream of one request, so that this class, not gRPC, waits for
    the request.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        who: Callable[[str], int | None],
        admins: frozenset[int],
    ) -> None:
        """Prepares the service; to be called in the event loop.

        Args:
            asker: queries the service's process.
            who: the user of a peer by gRPC's name.
            admins: users that may make changes.
        """
        self._who = who
        self._calls = OpenCalls(admins)
        self.views = Views(asker)
        reads = ReadMethods(asker, self.views)
        changes = ChangeMethods(asker, self.views, reads)
        of_extensions = reads.of_extensions() | changes.of_extensions()
        # Later ones count: no extension replaces a method, and none makes a change a read.
        self._methods = of_extensions | reads.methods() | changes.methods()
        self.changes = changes.log

    def service(self, handler_call_details: Any) -> Any:
        head, _, name = handler_call_details.method.rpartition("/")
        method = self._methods.get(name)
        if head != f"/{OPERATOR}" or method is None:
            return None
        return grpc.stream_unary_rpc_method_handler(functools.partial(self._call, name, method))

    async def _call(
        self,
        name: str,
        method: CallMethod,
        questions: AsyncIterator[bytes],
        context: Any,
    ) -> bytes:
        uid = self._who(context.peer())
        if uid is None:
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "connect through the service's sockets"
            )
            raise AssertionError("abort raises")
        call = self._calls.enter(uid, context)
        code, text = grpc.StatusCode.INTERNAL, ""
        try:
            return await self._calls.answer(call, method, questions, context)
        except (Refused, RemoteRefusal) as error:
            code, text = _code(error), error.text
        except BridgeError as error:
            code, text = code_of(error), str(error)
            _log.warning("%s is refused: %s", name, error)
        except Exception as error:
            _log.exception("%s failed", name)
            text = f"{type(error).__name__}: see the service's log"
        await context.abort(code, text)
        raise AssertionError("abort raises")


def _code(error: Refused | RemoteRefusal) -> grpc.StatusCode:
    return error.code if isinstance(error, Refused) else grpc.StatusCode[error.code]


_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 120_000),
    ("grpc.max_connection_age_ms", 300_000),
    ("grpc.max_connection_age_grace_ms", 120_000),
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.http2.bdp_probe", 0),  # bounds the data that a caller may send ahead to 64 KiB
]


async def serve(service: OperatorService, sockets: dict[str, int]) -> list[Any]:
    """Starts to serve at private sockets.

    Args:
        service: answers the calls.
        sockets: path to the largest request accepted there, bytes.

    Returns:
        The servers.
    """
    servers = []
    for path, size in sockets.items():
        server = grpc.aio.server(options=[*_OPTIONS, ("grpc.max_receive_message_length", size)])
        server.add_generic_rpc_handlers((service,))
        healthy = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        reflection.enable_server_reflection(
            (OPERATOR, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        for known in ("", OPERATOR):
            await healthy.set(known, health_pb2.HealthCheckResponse.SERVING)
        servers.append(server)
    return servers
