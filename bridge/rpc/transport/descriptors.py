# SPDX-License-Identifier: Apache-2.0
"""Computes how many connections the descriptors suffice for."""

import contextlib
import resource


def affordable(maximum: int, kept: int, gates: int = 1) -> int:
    """The number of connections for which there are descriptors.

    Each takes three: the client's, the server's, and the one by which gRPC has it.

    Args:
        maximum: upper bound of the result.
        kept: descriptors for everything else.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(2, min(maximum, (limit - kept) // (3 * gates)))


def raise_descriptor_limit() -> int:
    """Raises the limit of descriptors to the maximum for this process; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft
