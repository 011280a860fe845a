# SPDX-License-Identifier: Apache-2.0
"""Writes what was learnt as JSON with an entry a line, and reads it, or YAML, again.

Rules
    1. Texts may have `MAX_BYTES`: sufficient for all that a service keeps (`kept_keys.MAX`), with
       names of full length in ASCII.
    2. JSON is read as such: YAML reads some of its escapes otherwise, is slow, and has lower bounds
       (`bridge.yaml_text`).
"""

import json
from typing import Any, Final

from bridge import json_text, yaml_text
from bridge.errors import ConfigError
from bridge.extensions.sharing.exchange import exported, imported
from bridge.model.learnt import MAX_TEXT_BYTES, Learnt

MAX_BYTES: Final = MAX_TEXT_BYTES


def written(pairs: Learnt, asax: Learnt) -> str:
    parts = []
    for key, part in exported(pairs, asax).items():
        if isinstance(part, list):
            text = "[" + ",".join(f"\n {_compact(each)}" for each in part) + "]"
        else:
            text = _compact(part)
        parts.append(f"{_compact(key)}:{text}")
    return "{" + ",\n".join(parts) + "}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def read(text: str) -> tuple[Learnt, Learnt]:
    """The state of `pairs` and `asax` after an import.

    Raises:
        ConfigError: it is too long, is no JSON and no YAML, or does not fit.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError("file", f"is longer than {MAX_BYTES >> 20} MiB")
    return imported(_value(text))


def _value(text: str) -> Any:
    try:
        return json_text.load(text, object_pairs_hook=_once)
    except OSError as error:
        raise ConfigError("file", f"{error.strerror}".lower()) from None
    except ValueError as error:  # no JSON, or a key twice, or a number of too many digits
        if len(text) > yaml_text.MAX_CHARACTERS:
            raise ConfigError("file", f"is not JSON: {error}"[:200]) from None
    try:
        return yaml_text.load(text)
    except yaml_text.NoYaml as error:
        raise ConfigError("file", f"is neither JSON nor YAML: {error}") from None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a key is listed twice")
    return found
