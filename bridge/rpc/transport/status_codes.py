# SPDX-License-Identifier: Apache-2.0
"""Maps the errors of this package to gRPC status codes and back, by one table."""

from typing import Final

import grpc

from bridge.errors import (
    BadRequest,
    BridgeError,
    ConfigError,
    ControllerError,
    ExtensionError,
    InvalidPlan,
    LineError,
    PolicyError,
    RecordingError,
    RequestError,
    ResultError,
    SnapshotError,
    StaleSnapshot,
    TraceError,
    UnknownOp,
    Unreachable,
    UnsupportedVersion,
)

CODES: Final[dict[type[BridgeError], grpc.StatusCode]] = {
    BridgeError: grpc.StatusCode.INTERNAL,
    ConfigError: grpc.StatusCode.INVALID_ARGUMENT,
    TraceError: grpc.StatusCode.INVALID_ARGUMENT,
    RecordingError: grpc.StatusCode.INVALID_ARGUMENT,
    ResultError: grpc.StatusCode.INVALID_ARGUMENT,
    BadRequest: grpc.StatusCode.INVALID_ARGUMENT,
    RequestError: grpc.StatusCode.INVALID_ARGUMENT,
    SnapshotError: grpc.StatusCode.INVALID_ARGUMENT,
    LineError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownOp: grpc.StatusCode.INVALID_ARGUMENT,
    PolicyError: grpc.StatusCode.INTERNAL,
    ExtensionError: grpc.StatusCode.INTERNAL,
    InvalidPlan: grpc.StatusCode.INTERNAL,
    ControllerError: grpc.StatusCode.UNAVAILABLE,
    Unreachable: grpc.StatusCode.UNAVAILABLE,
    StaleSnapshot: grpc.StatusCode.ABORTED,
    UnsupportedVersion: grpc.StatusCode.FAILED_PRECONDITION,
}
"""Every class of `bridge.errors` has a line here; a test verifies this."""


def code_of(error: BridgeError) -> grpc.StatusCode:
    """Returns the code of an error: its own, or that of its nearest ancestor."""
    for ancestor in type(error).__mro__:
        if ancestor in CODES:
            return CODES[ancestor]
    return grpc.StatusCode.INTERNAL


def error_of(call: grpc.RpcError, address: str) -> BridgeError:
    """Returns the error of this package for a failed call."""
    code, details = call.code(), call.details() or ""
    match code:
        case grpc.StatusCode.UNAVAILABLE:
            return Unreachable(f"no answer at {address}: is 'schedbridge serve' running?")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return Unreachable(f"no answer from {address} in time")
        case grpc.StatusCode.ABORTED:
            return StaleSnapshot(details)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return UnsupportedVersion(details)
        case grpc.StatusCode.PERMISSION_DENIED:
            return ControllerError(f"not allowed: {details}")
    return ControllerError(details or f"{address} answers {code.name}")
