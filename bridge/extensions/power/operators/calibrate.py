# SPDX-License-Identifier: Apache-2.0
"""Power of nodes, fitted to the reports of metered ones, as wire messages."""

from collections.abc import Mapping

import numpy as np

from bridge.extensions.power.calibration import Calibration, NodeReports, calibrations
from bridge.extensions.power.rules import PowerRules
from bridge.model.rules.node_set import NodeSet
from bridge.rpc.controller.cycles import Published
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex


def calibrate_reply(
    rules: PowerRules | None, published: Published, curves: Mapping[str, NodeReports]
) -> pb.CalibrateReply:
    """All types of nodes.

    Args:
        rules: rules of the site; None: power is not bounded.
        published: the last cycle, with the cluster.
    """
    found = calibrations(rules, published.snapshot, curves)
    types = [_message(each, published.nodes) for each in found]
    return pb.CalibrateReply(bounded=rules is not None, types=types)


def _message(found: Calibration, table: NodeIndex) -> pb.FittedPower:
    line, nodes = found.line, found.nodes or NodeSet()
    message = pb.FittedPower(
        name=found.name,
        names=_folded(table, nodes.names),
        features=nodes.features,
        having=nodes.having,
        nodes=_folded(table, found.members),
        node_count=len(found.members),
        metered=found.metered,
        readings=found.readings,
        idle_w=line.idle_w,
        max_w=line.max_w,
        error_w=line.error_w,
        least_load=line.least_load,
        most_load=line.most_load,
        problem=line.problem,
    )
    if found.before_w is not None:
        message.stated_idle_w, message.stated_max_w = found.before_w
    return message


def _folded(table: NodeIndex, names: tuple[str, ...]) -> str:
    """A hostlist, with nodes that the cluster does not have one by one."""
    index = table.index
    rows = np.array([index[name] for name in names if name in index], dtype=np.int32)
    known = [table.fold(rows)] if len(rows) else []
    return ",".join([*known, *(name for name in names if name not in index)])
