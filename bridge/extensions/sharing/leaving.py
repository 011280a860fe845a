# SPDX-License-Identifier: Apache-2.0
"""Why guests go back to the queue: the text for users, and how it is counted."""

from typing import Final

from bridge.extensions.sharing.slowdown import HostSlowdown

NO_MEMORY: Final = "memory is short on the nodes that it shares"
NO_ROOM: Final = "its memory and its host's do not fit on the nodes that they share"
TOO_LATE: Final = "beside it, its host would not end within its time limit"
ALWAYS_SLOW: Final = "it slows its host down by more than is allowed, however little it uses"
UNKNOWN: Final = "how much it slows its host down cannot be measured"
NOT_NOW: Final = "jobs may not share nodes at present: it starts again on nodes of its own"
STOPPED: Final = "guests have slowed down the jobs of its host's user too much"
_SLOW: Final = "it slows its host down by "

KINDS: Final = ("slowdown", "memory", "time-limit", "switched-off", "other")
_KIND_OF: Final = {
    NO_MEMORY: "memory", NO_ROOM: "memory", TOO_LATE: "time-limit", ALWAYS_SLOW: "slowdown",
    NOT_NOW: "switched-off", STOPPED: "switched-off",
}  # fmt: skip


def too_slow(found: HostSlowdown, bound: float) -> str:
    """The reason of a guest that slows its host down by more than its bound."""
    return (
        f"{_SLOW}{found.mean:.0%} even at the floor (at least "
        f"{found.at_least:.0%}, 95 % sure); {bound:.0%} are allowed"
    )


def kind_of(reason: str) -> str:
    """One of `KINDS`."""
    return "slowdown" if reason.startswith(_SLOW) else _KIND_OF.get(reason, "other")
