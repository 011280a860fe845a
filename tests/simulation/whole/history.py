# SPDX-License-Identifier: Apache-2.0
"""What happened in a run, as plain values: written by the models, judged by the checker."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        at_ms: virtual time.
        kind: a word; `checker.py` says which there are.
        what: the particulars, plain values only.
    """

    at_ms: int
    kind: str
    what: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.what[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.what.get(name, default)

    def __str__(self) -> str:
        facts = " ".join(f"{name}={_shown(value)}" for name, value in self.what.items())
        return f"{self.at_ms / 1000:>10.3f}  {self.kind:<12} {facts}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)


class History:
    """Events in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, at_ms: int, kind: str, **what: Any) -> None:
        self.events.append(Event(at_ms, kind, what))

    def digest(self) -> str:
        """A short name of everything that happened."""
        hashed = hashlib.sha256()
        for event in self.events:
            line = json.dumps([event.at_ms, event.kind, event.what], sort_keys=True, default=str)
            hashed.update(line.encode())
        return hashed.hexdigest()[:16]

    def text(self, last: int | None = None, about: str = "") -> str:
        """Readable lines; only the last ones, only those that mention a word."""
        lines = [str(event) for event in self.events]
        if about:
            lines = [line for line in lines if about in line]
        return "\n".join(lines if last is None else lines[-last:])
