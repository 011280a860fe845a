# SPDX-License-Identifier: Apache-2.0
"""Objects that cannot be read: left out, so that they do not stop the others, named, logged once.

Whatever one attribute of one job holds, all other jobs are read.
"""

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bridge.errors import BridgeError
from bridge.line_text import on_one_line

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_MAX_SHOWN = 10


@dataclass
class LeftOut:
    """The objects of one kind that are left out now.

    Attributes:
        kind: what they are, in messages.
        reasons: name to why.
    """

    kind: str
    reasons: dict[str, str] = field(default_factory=dict)

    def unless(self, name: str, make: Callable[..., _T], *given: Any) -> _T | None:
        """What is made of an object; None: it cannot be read, and is left out."""
        try:
            made = make(*given)
        except BridgeError as error:
            self.add(name, str(error))
            return None
        except Exception as error:
            self.add(name, f"{type(error).__name__}: {error}", trace=True)
            return None
        self.reasons.pop(name, None)
        return made

    def add(self, name: str, reason: str, *, trace: bool = False) -> None:
        """Leaves an object out."""
        reason = on_one_line(reason[:160])
        if self.reasons.get(name) != reason:
            _log.warning("%s %.80s is left out: %s", self.kind, name, reason, exc_info=trace)
        self.reasons[name] = reason

    def keep(self, names: Container[str]) -> None:
        """Forgets those that are not among all objects any more."""
        for name in [name for name in self.reasons if name not in names]:
            del self.reasons[name]

    def problems(self) -> list[str]:
        """A line for each of the first, and how many more there are."""
        lines = [
            f"{self.kind} {on_one_line(name[:80])} is left out: {reason}"
            for name, reason in list(self.reasons.items())[:_MAX_SHOWN]
        ]
        more = len(self.reasons) - len(lines)
        return [*lines, f"{more} more of kind {self.kind} are left out"] if more else lines
