# SPDX-License-Identifier: Apache-2.0
"""Who requests a change; and requests for extensions on the private channel.

A read of an extension has three parts: its name, a method, and the encoded request. A change has
three more: the uid, the name, and whether it is an administrator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_N_READ_PARTS = 3


@dataclass(frozen=True)
class Requester:
    """Who requests a change.

    Attributes:
        uid: as the kernel says; -1: a program.
        name: the name of the user or the program.
        admin: an administrator, whose entries nobody else's push out.
    """

    uid: int
    name: str
    admin: bool


def read_parts(extension: str, method: str, question: bytes) -> list[bytes]:
    """A request for `ServicePart.reads`."""
    return [extension.encode(), method.encode(), question]


def change_parts(extension: str, method: str, question: bytes, who: Requester) -> list[bytes]:
    """A request for `ServicePart.changes`; sent only for calls that are logged."""
    name = who.name.encode(errors="replace")
    admin = b"admin" if who.admin else b""
    return [*read_parts(extension, method, question), str(who.uid).encode(), name, admin]


def requester(parts: Sequence[bytearray]) -> Requester | None:
    """Who requests a change by these parts; None: they are a read."""
    if len(parts) == _N_READ_PARTS:
        return None
    uid, name, admin = parts[_N_READ_PARTS:]
    return Requester(int(uid), name.decode(), bool(admin))
