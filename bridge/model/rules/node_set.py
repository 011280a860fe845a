# SPDX-License-Identifier: Apache-2.0
"""A set of nodes as named in the rules of a site."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A set of nodes, given by conditions that must all hold.

    Attributes:
        names: one of these; empty: any.
        features: a feature expression (`bridge.planning.requests.features`); empty: any.
        having: a resource of which the node has at least one; empty: any.
    """

    names: tuple[str, ...] = ()
    features: str = ""
    having: str = ""
