# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an input that pydantic refuses: key and reason, in words for its author."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, RootModel, ValidationError

from bridge.errors import ConfigError

_MAX_SHOWN: Final = 20
_WORDS: Final = {
    "missing": "is missing",
    "value_error": "{message}",
    "model_type": "must be a section of keys, not {given}",
    "path_type": "must be a file name, not {given}",
    "tuple_type": "must be a list, not {given}",
    "int_type": "must be a whole number, not {given}",
    "float_type": "must be a number, not {given}",
    "too_short": "has fewer entries than {min_length}",
    "too_long": "has more than {max_length} entries",
    "string_too_long": "is longer than {max_length} characters",
    "policy": "{problem}",
}
"""By pydantic's type of an error; others have its own words."""


class ConfigProblems(ConfigError):
    """Everything that is wrong with a file; one line each."""

    def __init__(self, problems: list[ConfigError]) -> None:
        self.problems = tuple(problems)
        first = problems[0]
        super().__init__(first.key, first.problem, file=first.file)

    def __str__(self) -> str:
        shown = [str(problem) for problem in self.problems[:_MAX_SHOWN]]
        if more := len(self.problems) - len(shown):
            shown.append(f"{self.file}: and {more} more problems")
        return "\n".join(shown)


def problems_of(
    error: ValidationError, model: type[BaseModel], *, key: str = "", file: str | None = None
) -> list[ConfigError]:
    """Returns all problems.

    Args:
        model: that the input was validated as.
        key: what the input is called in messages.
        file: that it is from; None: no file.
    """
    return [_problem(item, model, key, file) for item in error.errors()]


def _problem(item: Any, model: type[BaseModel], key: str, file: str | None) -> ConfigError:
    context = item.get("ctx", {})
    parts, known = _walk(item["loc"], model)
    message = str(item["msg"]).removeprefix("Value error, ")
    given = f"{item.get('input')!r:.60}"
    if item["type"] == "extra_forbidden":
        text = f"unknown key; there are {', '.join(known)}"
    elif words := _WORDS.get(item["type"]):
        text = words.format(**{**context, "message": message, "given": given})
    else:
        text = f"{message[:1].lower()}{message[1:]}, not {given}"
    where = context.get("key") or ".".join(part for part in (key, *parts) if part)
    return ConfigError(where, text, file=file)


def _walk(path: Sequence[Any], model: type[BaseModel]) -> tuple[list[str], list[str]]:
    """The parts of a key without what pydantic adds to it; and the keys beside the last one."""
    parts, names = list[str](), set[str]()
    for at, part in enumerate(path):
        named = {field.alias or name: field for name, field in model.model_fields.items()}
        if part in names or str(part).startswith("function-"):
            continue  # it names the member of a union
        parts.append(str(part))
        if part in named and at < len(path) - 1:
            models = list(_models(named[part].annotation))
            names = {each.__name__ for each in models}
            model = models[0] if models else model
    return parts, [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models within a type, as in `tuple[Model | str, ...]`; of a list's, those in the list."""
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from _models(annotation.model_fields["root"].annotation)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
