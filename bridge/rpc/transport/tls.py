# SPDX-License-Identifier: Apache-2.0
"""Authenticates callers over TCP by certificates of one authority with configured subjects.

Rules
    1. The handshake is completed and the certificate's subject checked before a byte of the call
       is read. TLS ends at the gate.
    2. A caller with a valid certificate of another subject gets an error from a server that reads
       no messages.
    3. If every node has its own certificate, all certificates of the authority are admitted, and
       the server behind the gate gets their names; those of configured subjects may do everything.
    4. A revoked certificate is not admitted. If a certificate is revoked, its connections are
       closed.
    5. Until the handshake is over, a connection is a newcomer, counted by its source
       (`newcomers.py`); so are those of rule 2. The others count for their subject. So callers
       without a valid certificate cannot use up the share of those with one.
"""

import socket
import ssl
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from bridge import files
from bridge.errors import ConfigError
from bridge.rpc.transport.callers import KnownCaller
from bridge.rpc.transport.introductions import Introductions
from bridge.rpc.transport.newcomers import source_of
from bridge.rpc.transport.relay import READ, WRITE, ByteAllowance
from bridge.rpc.transport.revoked import LogRevoked, Revoked, certificate_of, log_nothing
from bridge.service.config import TlsSection

_KEEPALIVE_S = 30
_WORDS = "this certificate may not call ({key}.subjects)"
_STRANGERS_RATE, _STRANGERS_BURST = 64 << 10, 512 << 10


class Certificates:
    """Lets in certificates whose name is configured; a `CallerPolicy` (`callers.py`)."""

    def __init__(
        self,
        tls: TlsSection,
        target: str,
        strangers: str,
        key: str = "controller.tls",
        names: Introductions[frozenset[str]] | None = None,
        *,
        log_revoked: LogRevoked = log_nothing,
    ) -> None:
        """Reads keys and certificates.

        Args:
            target: the private socket behind the gate.
            strangers: the private socket of the server for certificates of other subjects.
            key: the key of the section, for messages.
            names: tell the server the names of certificates, which are all admitted; None: only
                those of configured subjects are.
            log_revoked: takes changes of the list of revoked certificates.

        Raises:
            ConfigError: one of them cannot be read.
        """
        self._context = _context(tls, key)
        self.revoked = Revoked(tls.revoked, f"{key}.revoked", log_revoked)
        self.subjects = frozenset(tls.subjects)
        self.target, self.strangers, self.names = target, strangers, names

    def introduce(self, client: socket.socket) -> "_TlsHandshake":
        for option, value in (
            (socket.TCP_KEEPIDLE, _KEEPALIVE_S),
            (socket.TCP_KEEPINTVL, _KEEPALIVE_S // 3),
            (socket.TCP_USER_TIMEOUT, 2000 * _KEEPALIVE_S),
        ):
            client.setsockopt(socket.IPPROTO_TCP, option, value)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        address = str(client.getpeername()[0])
        secured = self._context.wrap_socket(
            client, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        return _TlsHandshake(secured, address, self)

    def banned(self) -> Callable[[Hashable], bool] | None:
        """The identities with a revoked certificate."""
        self.revoked.refresh()
        return self.revoked.__contains__ if self.revoked else None


class _TlsHandshake:
    """One handshake; a `bridge.rpc.transport.callers.Handshake`."""

    client: socket.socket
    source: Hashable

    def __init__(self, client: ssl.SSLSocket, address: str, policy: Certificates) -> None:
        self.client = client
        self.source = source_of(address)
        self._address = address
        self._tls = client
        self._policy = policy

    def step(self) -> KnownCaller | int:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return READ
        except ssl.SSLWantWriteError:
            return WRITE
        policy, certificate = self._policy, certificate_of(self._tls)
        known = sorted(certificate.names & policy.subjects)
        shown = ", ".join(known[:1] or sorted(certificate.names))[:200] or "without a name"
        policy.revoked.refresh()
        if certificate in policy.revoked:
            return KnownCaller(f"certificate {shown}, revoked, from {self._address}", None)
        if known or policy.names is not None:
            told = policy.names.of(certificate.names) if policy.names is not None else None
            owner = f"certificate {shown}"
            return KnownCaller(owner, policy.target, introduction=told, identity=certificate)
        return KnownCaller(
            f"certificate {shown} from {self._address}",
            policy.strangers,
            ByteAllowance(_STRANGERS_RATE, _STRANGERS_BURST),
            unwelcome=True,
            identity=certificate,
        )


def _context(tls: TlsSection, section: str) -> ssl.SSLContext:
    for key in ("ca", "cert", "key"):
        path: Path = getattr(tls, key)
        try:
            files.read_bytes(path)
        except OSError as error:
            raise ConfigError(
                f"{section}.{key}", f"cannot read {path}: {error.strerror}"
            ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    try:
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
    except (OSError, ValueError) as error:
        problem = f"{tls.cert} and {tls.key} are not a certificate and its key"
        raise ConfigError(f"{section}.cert", problem) from error
    try:
        context.load_verify_locations(tls.ca)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{section}.ca", f"{tls.ca} holds no certificate") from error
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Refusing(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every call that its certificate is not named, before its message is read."""

    def __init__(self, key: str) -> None:
        self._words = _WORDS.format(key=key)

    def service(self, handler_call_details: Any) -> Any:
        """The same for all methods."""
        del handler_call_details

        def refuse(_messages: Any, context: grpc.ServicerContext) -> None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, self._words)

        return grpc.stream_unary_rpc_method_handler(refuse)


class RefusingServer:
    """The server for certificates of other subjects."""

    def __init__(self, path: str, key: str = "controller.tls") -> None:
        """Begins to serve at a private socket; `key` is the section that names the certificates."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="strangers")
        options = [
            ("grpc.max_receive_message_length", 1 << 10),
            ("grpc.max_metadata_size", 8 << 10),
            ("grpc.http2.bdp_probe", 0),  # a caller may be 64 KiB ahead, not megabytes
            ("grpc.max_concurrent_streams", 4),
            ("grpc.max_connection_age_ms", 10_000),
            ("grpc.max_connection_age_grace_ms", 1_000),
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.server(self._pool, handlers=[Refusing(key)], options=options)
        self._server.add_insecure_port(f"unix:{path}")
        self._server.start()

    def stop(self) -> None:
        """Ends at once."""
        self._server.stop(0)
        self._pool.shutdown(wait=False)
