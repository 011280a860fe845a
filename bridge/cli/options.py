# SPDX-License-Identifier: Apache-2.0
"""Commands whose arguments and options are the fields of one dataclass."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

Options = TypeVar("Options")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Makes a command for typer of a function of one dataclass.

    Args:
        options: its fields are annotated with what typer needs, and have defaults unless they are
            required.
    """

    def command_of(run: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(run)
        def command(**given: Any) -> None:
            run(options(**given))

        hints = get_type_hints(options, include_extras=True)
        command.__annotations__ = hints
        vars(command)["__signature__"] = inspect.Signature(
            [
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=_default(field),
                    annotation=hints[field.name],
                )
                for field in dataclasses.fields(options)  # type: ignore[arg-type]
            ]
        )
        return command

    return command_of


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
