# SPDX-License-Identifier: Apache-2.0
"""What an extension may add for operators: the third page of the port.

    service     in the service's process: state that operators read and change
    methods     in the operators' process: how methods of the operators' service are answered

Operators, their commands and other programs reach the service's process only through the methods
and pages of the operators' process, which logs every change. Both are optional
(`bridge.extensions.port.Extension`). Parts are derived from the classes here, which do nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ServicePart:
    """What an extension runs in the service's process; methods but `before_cycle` by any thread.

    Attributes:
        reads: by a name that `OperatorMethods` ask for: message to the parts of an answer; these
            change nothing.
        changes: by method of `OperatorMethods.changes` and of its page: a message, and a
            `bridge.rpc.operators.requester.Requester`, to the parts of an answer.
    """

    reads: Mapping[str, Callable[[bytes], Sequence[Any]]] = {}
    changes: Mapping[str, Callable[[bytes, Any], Sequence[Any]]] = {}

    def start(self, admins: frozenset[int]) -> None:
        """The service begins to serve; `admins`: user ids."""

    def before_cycle(self, now_s: int) -> None:
        """Puts its part of the site's rules in force; under the lock of the cycle.

        An error refuses the cycle: without the rules, its plan could be illegal.
        """

    def reload(self, planning: Any) -> None:
        """Takes a `PlanningSection` that is about to come into force."""

    def in_force(self) -> object:
        """What orders of administrators change, for answers from a view: an immutable value.

        Each change of it counts in `PolicySwitch.changes`.
        """
        return None

    def status(self, reply: Any) -> Sequence[str]:  # noqa: ARG002
        """Writes its fields of a `StatusReply`; returns its problems, for answers from a view."""
        return ()

    def stop(self) -> None:
        """The service ends; the store is still open."""


@dataclass(frozen=True)
class ListeningPage:
    """A page over HTTP, on which other programs call.

    Attributes:
        address: HOST:PORT to listen at.
        key: where the configuration names it.
        settings: for `OperatorMethods.page`; plain values.
    """

    address: str
    key: str
    settings: Mapping[str, Any]


class ServiceParts:
    """Makes the part of one service; both methods may raise ConfigError, which ends the start."""

    def page(self, config: Any) -> ListeningPage | None:  # noqa: ARG002
        """The page that a `bridge.service.config.ServiceConfig` asks for."""
        return None

    def part(self, context: Any) -> ServicePart:  # noqa: ARG002
        """The part; `context`: a `bridge.service.extension_parts.ServiceContext`."""
        return ServicePart()


class OperatorMethods:
    """Methods of `schedbridge.v1.Operator`, in the operators' process, which answers from views.

    Attributes:
        reads: by method: a `bridge.rpc.operators.queries.Read`, of a view alone.
        looks: by method: a `bridge.rpc.operators.extension_methods.Look`, which changes nothing
            and may ask `ServicePart.reads`.
        changes: by method: a `bridge.rpc.operators.extension_methods.ServedChange`.
    """

    reads: Mapping[str, Any] = {}
    looks: Mapping[str, Any] = {}
    changes: Mapping[str, Any] = {}

    def lines(self, published: Any, row: int) -> Iterator[str]:  # noqa: ARG002
        """What it knows of a running job; `published`: the last cycle."""
        return iter(())

    def page(self, settings: Mapping[str, Any], change: Any) -> Any:  # noqa: ARG002
        """The `HttpPages` for `ListeningPage.settings`.

        `change` is a `bridge.rpc.operators.extension_methods.PageChange`, the only way to the
        service's process; it logs.
        """
        raise LookupError("ServiceParts.page asks for a page that is not made")
