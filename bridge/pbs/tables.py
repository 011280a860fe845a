# SPDX-License-Identifier: Apache-2.0
"""A server's objects as the batch interface (IFL) states them: attributes by name, all as text."""

from dataclasses import dataclass

Attributes = dict[str, str | dict[str, str]]
"""Attribute to value, or to its values by resource, as `qstat -f -F json` prints them. Every value
is a text; instants are Unix seconds. Repeated values of an attribute are joined by commas."""

Objects = dict[str, Attributes]
"""By name: `12.server` (a job), `12[].server` (an array), `12[3].server` (a task that has
started), `n4[0]` (a vnode)."""


@dataclass(frozen=True)
class Tables:
    """One server at one moment; never changed.

    An object that did not change is the same dictionary as in the tables before.

    Attributes:
        now_s: the clock, Unix seconds.
        sched: those of the scheduler object that this link is registered as.
        jobs: all that have not ended, with arrays and their started tasks.
        resources: definitions: name to `type` and `flag`.
    """

    now_s: int
    server_name: str
    server: Attributes
    sched: Attributes
    queues: Objects
    vnodes: Objects
    jobs: Objects
    reservations: Objects
    resources: Objects


def text(attributes: Attributes, name: str) -> str:
    """Returns the value of an attribute without resources; empty: it is not stated."""
    value = attributes.get(name, "")
    return value if isinstance(value, str) else ""


def amounts(attributes: Attributes, name: str) -> dict[str, str]:
    """Returns the values of an attribute by resource; empty: it is not stated."""
    value = attributes.get(name)
    return value if isinstance(value, dict) else {}
