# SPDX-License-Identifier: Apache-2.0
"""What extensions run in the service's process (`bridge.extensions.operators_port.ServicePart`).

One that cannot be made or started stops the service: it may hold rules that bind every plan.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.extension_packages import installed
from bridge.extensions.operators_port import ListeningPage, ServicePart
from bridge.rpc.agents.hub import Hub
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.pb import operator_pb2 as pb
from bridge.safe_cycle.decider import Decider
from bridge.service.config import ServiceConfig
from bridge.service.telemetry import Metrics
from bridge.state.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceContext:
    """The service that a part runs in.

    Attributes:
        cycles: answers the controller; not to be called before the first cycle.
        hub: the hub of agents; None: the service has no agents.
        log_change: puts a change that no request of an operator makes, as by a file, in the log of
            operators' changes.
    """

    config: ServiceConfig
    cycles: Callable[[], Cycles]
    decider: Decider
    switch: PolicySwitch
    store: Store
    metrics: Metrics
    hub: Hub | None
    log_change: Callable[[pb.OperatorChange], None]


def service_parts(context: ServiceContext) -> dict[str, ServicePart]:
    """The part of each extension that has one, by the extension's name."""
    return {
        name: extension.service.made().part(context)
        for name, extension in installed().by_name.items()
        if extension.service is not None
    }


def stop(parts: Mapping[str, ServicePart]) -> None:
    """Stops each; one that fails stops neither the others nor the end of the service."""
    for name, part in parts.items():
        try:
            part.stop()
        except Exception:  # a stranger's code
            _log.exception("the extension %s has not stopped", name)


def pages(config: ServiceConfig) -> dict[str, ListeningPage]:
    """The page of each extension that listens for other programs, by the extension's name."""
    found = {}
    for name, extension in installed().by_name.items():
        page = None if extension.service is None else extension.service.made().page(config)
        if page is not None:
            found[name] = page
    return found
