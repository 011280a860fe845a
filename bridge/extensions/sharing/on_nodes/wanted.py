# SPDX-License-Identifier: Apache-2.0
"""The shares that should be in force on a node: ordered ones, and fallback after a lease has ended.

Terms
    share   the weight and the quota of one job on one node
    lease   how long an order is valid; the service renews it

Rules
    1. An order is the whole state: a job that is not in it has its full share.
    2. After the end of a lease a guest has the least weight, and a host has no quota. While another
       job is on its node, a guest has `FLOOR` of the node's CPUs: the host runs almost as if alone,
       and the guest still makes progress. Alone on its node, it has no quota.
    3. No job gets less than `FLOOR`, because it could neither finish nor be ended.
    4. A lease is at most `MAX_LEASE_S`, whatever the service states. Together with the pause
       between two passes, that is less than 10 s.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

MIN_WEIGHT: Final = 1
USUAL_WEIGHT: Final = 100
MAX_WEIGHT: Final = 10_000
FLOOR: Final = 0.05
MAX_LEASE_S: Final = 8.0
MAX_SHARES: Final = 1024
"""In one order."""

ShareKey = tuple[str, str]
"""Node and job."""


@dataclass(frozen=True)
class Share:
    """The share of a job on a node.

    Attributes:
        job: its id on the node.
        guest: it runs on the nodes of another job.
        milli_cpus: maximum that it may use, in thousandths of a CPU; 0: no quota.
        weight: its share where CPU time is short, 1 to 10,000 as in cgroup v2; 100 is the default.
    """

    node: str
    job: str
    guest: bool = False
    milli_cpus: int = 0
    weight: int = USUAL_WEIGHT

    @property
    def key(self) -> ShareKey:
        """Node and job."""
        return self.node, self.job

    @property
    def is_full(self) -> bool:
        """Whether it is the full share, for which nothing is to be done."""
        return not self.milli_cpus and self.weight == USUAL_WEIGHT


def is_job(job: str) -> bool:
    """Whether this is a valid job id on a node; it becomes part of paths."""
    return job.isascii() and job.isdecimal() and len(job) <= 10


def bounded(share: Share, cpus: float) -> Share:
    """The share within rule 3."""
    minimum = floor_milli(cpus)
    quota = 0 if share.milli_cpus <= 0 else max(share.milli_cpus, minimum)
    if quota >= 1000 * cpus:
        quota = 0
    weight = min(max(share.weight, MIN_WEIGHT), MAX_WEIGHT)
    return replace(share, milli_cpus=quota, weight=weight)


def fallen_back(
    shares: Iterable[Share], cpus: float, alone: Container[ShareKey]
) -> tuple[Share, ...]:
    """The shares in force after the end of the lease (rule 2).

    Args:
        alone: guests that are the only job on their node.
    """
    floor = floor_milli(cpus)
    return tuple(
        replace(share, milli_cpus=0 if share.key in alone else floor, weight=MIN_WEIGHT)
        for share in shares
        if share.guest
    )


def floor_milli(cpus: float) -> int:
    """The least quota, in thousandths of a CPU, at least 10."""
    return max(round(1000 * cpus * FLOOR), 10)
