# SPDX-License-Identifier: Apache-2.0
"""The words with which the command `schedbridge` was called, for the provenance of results."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

_GIVEN: Final[ContextVar[tuple[str, ...]]] = ContextVar("given", default=())


def remember(arguments: Sequence[str]) -> None:
    """Keeps the words of the call."""
    _GIVEN.set(tuple(arguments))


def given_arguments() -> tuple[str, ...]:
    """The words behind `schedbridge`; nothing where no command runs."""
    return _GIVEN.get()
