# SPDX-License-Identifier: Apache-2.0
"""The file that describes the switches; read again when it or the set of nodes changes."""

import logging
from collections.abc import Sequence
from pathlib import Path

from bridge.dialect import DIALECTS, dialect_named
from bridge.errors import ConfigError
from bridge.model.topology import Topology

_log = logging.getLogger(__name__)


class Switches:
    """Reads a file for a session; errors are logged.

    While the file cannot be read (it may be incomplete), the last topology remains in force for the
    same nodes, so that no job gets nodes of two fabrics. If there is none, there is no topology.
    """

    def __init__(self, path: Path) -> None:
        """Reads nothing yet.

        Args:
            path: a file that the controller's dialect reads; Slurm's is topology.conf.
        """
        self._path = path
        self._known: tuple[Sequence[str], int] | None = None
        self._topology: Topology | None = None

    def warn(self) -> None:
        """Logs a warning if no dialect can use the file; called before a controller connects."""
        problem: ConfigError | None = None
        for name in DIALECTS:
            try:
                dialect_named(name).read_topology(self._path)
            except ConfigError as error:
                problem = problem or error
            else:
                return
        _log.warning("%s; until this is fixed, jobs are placed without a topology", problem)

    def above(self, nodes: Sequence[str], dialect: str = "") -> Topology | None:
        """Returns the switches above these nodes; None: the file cannot be used.

        Args:
            dialect: the controller's dialect (`bridge.dialect`).
        """
        try:
            changed_ns = self._path.stat().st_mtime_ns
        except OSError:
            changed_ns = -1
        if self._known is None or self._known[0] is not nodes or self._known[1] != changed_ns:
            same = self._known is not None and self._known[0] is nodes
            self._known = (nodes, changed_ns)
            self._topology = self._read(nodes, dialect, self._topology if same else None)
        return self._topology

    def _read(self, nodes: Sequence[str], dialect: str, before: Topology | None) -> Topology | None:
        try:
            topology = dialect_named(dialect).read_topology(self._path, nodes)
        except ConfigError as error:
            meanwhile = "jobs are placed without a topology" if before is None else "the last holds"
            _log.error("%s; %s", error, meanwhile)
            return before
        missing = int((topology.leaf_of_node < 0).sum())
        if missing:
            _log.warning("%s: %d of %d nodes are on no switch", self._path, missing, len(nodes))
        return topology
