# SPDX-License-Identifier: Apache-2.0
"""The nodes that an agent may report for, by the names in its certificate."""

from collections.abc import Iterable

from bridge.rpc.transport.introductions import Introductions


class Speakers:
    """The rights of agents.

    An agent with a certificate for all agents may report for any node; one with a node's
    certificate only for the nodes that it names exactly.
    """

    def __init__(
        self,
        names: Introductions[frozenset[str]] | None = None,
        subjects: Iterable[str] = (),
    ) -> None:
        """Takes the rules.

        Args:
            names: names of the certificates of connections; None: all agents share a certificate.
            subjects: names of certificates for any node.
        """
        self._names, self._subjects = names, frozenset(subjects)

    def refused(self, peer: str, nodes: Iterable[str]) -> str:
        """The first of the nodes that an agent may not report for; empty: none.

        Args:
            peer: gRPC's name of the other side.
        """
        if self._names is None:
            return ""
        names = self._names.caller(peer) or frozenset()
        if names & self._subjects:
            return ""
        return next((node for node in nodes if node not in names), "")
