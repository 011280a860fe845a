# SPDX-License-Identifier: Apache-2.0
"""Requests to a server, after the last check."""

from dataclasses import dataclass

from bridge.rpc.pb import scheduler_pb2 as pb


@dataclass(frozen=True)
class StartOrder:
    """A start that may be sent to the server.

    Attributes:
        job_id: the job; for an array one of its tasks.
        exec_vnode: "(n1:ncpus=2:mem=1048576kb)+(n2:ncpus=2)".
        walltime_s: a new time limit; None: the job's own.
    """

    job_id: str
    exec_vnode: str
    walltime_s: int | None = None


@dataclass(frozen=True)
class Refusal:
    """Why a decision is not carried out: an outcome of the wire, PBS's code, a sentence."""

    result: "pb.Outcome"
    code: int
    text: str


@dataclass(frozen=True)
class Confirmation:
    """The answer to a request for a reservation.

    Attributes:
        location: where; "null": it is denied.
        extend: the extension field of the request.
        start_s: the start of the first occurrence; 0: as requested.
    """

    location: str
    extend: str
    start_s: int = 0
