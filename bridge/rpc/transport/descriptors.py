# SPDX-License-Identifier: Apache-2.0
"""How many connections there are descriptors for."""

import contextlib
import resource


def affordable(most: int, kept: int, gates: int = 1) -> int:
    """How many connections there are descriptors for.

    Each takes three: the client's, the server's, and the one by which gRPC has it.

    Args:
        most: at most so many.
        kept: descriptors for everything else.
        gates: that share the rest.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(2, min(most, (limit - kept) // (3 * gates)))


def raise_descriptor_limit() -> int:
    """Asks for as many descriptors as this process may have; returns how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft
