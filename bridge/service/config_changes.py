# SPDX-License-Identifier: Apache-2.0
"""What a configuration changes, read again or at a start, for the log of operators' changes.

Rules
    1. Each key whose value is another one is named, from what to what. Lists of the same length are
       compared entry by entry, others as a whole. A long value is shortened: it hides no other key.
    2. The author is the signal, and whose file it is: root and the service's user may send it, and
       the kernel does not tell a handler which of them did.
    3. A start is compared with what was in force last: the configuration, and the policy that an
       operator had set, which ends with the service.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bridge.model.policy import PolicySpec
from bridge.registry import describe
from bridge.rpc.operators.changes import DONE
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.revoked import RevokedChange
from bridge.rpc.transport.users import user_name
from bridge.service.config import ServiceConfig, to_mapping

MAX_VALUE: Final = 500
"""Characters of a value that are shown."""
_ABSENT: Final = object()
_PUT_IN_FORCE: Final = "planning"
"""The section that SIGHUP puts in force."""


class ChangedKey(NamedTuple):
    """A key whose value is another one; a key that one of the configurations lacks is `not set`."""

    key: str
    before: str
    after: str


def differences(former: ServiceConfig, present: ServiceConfig) -> list[ChangedKey]:
    """The differences between two configurations, in the order of their keys (rule 1)."""
    pair = (each.model_dump(mode="json", by_alias=True) for each in (former, present))
    return list(_differing("", *pair))


def reload_change(
    file: Path, found: Sequence[ChangedKey], result: str, at_s: int
) -> pb.OperatorChange:
    """The entry of a configuration that was read again on SIGHUP.

    Args:
        found: what it changes; of a file that cannot be read nothing is known.
        result: `DONE`, or why nothing was put in force.
        at_s: the instant, Unix seconds.
    """
    done = result == DONE
    late = [each.key for each in found if each.key.partition(".")[0] != _PUT_IN_FORCE]
    if done and late:
        result = f"{DONE}; a restart is needed for {', '.join(late)}"
    return pb.OperatorChange(
        at_s=at_s, uid=-1, user=f"SIGHUP, {file} of {_owner(file)}", method="Reload", done=done,
        before="\n".join(f"{each.key}: {each.before}" for each in found),
        after="\n".join(f"{each.key}: {each.after}" for each in found),
        result=result,
    )  # fmt: skip


def in_force(config: ServiceConfig, policy: PolicySpec) -> str:
    """What the service works with, as text for the next start."""
    return json.dumps(to_mapping(config) | {"policy": describe(policy)})


def start_change(
    file: Path | None, former: str, present: str, at_s: int
) -> pb.OperatorChange | None:
    """The entry of a start with another configuration than the one before (rule 3).

    Args:
        former, present: what `in_force` returned.

    Returns:
        None: it changes nothing.

    Raises:
        ValueError: `former` is no such text.
    """
    was = json.loads(former)
    if not isinstance(was, dict):
        raise ValueError("it is no mapping")
    found = list(_differing("", was, json.loads(present)))
    if not found:
        return None
    whose = "" if file is None else f", {file} of {_owner(file)}"
    return pb.OperatorChange(
        at_s=at_s, uid=-1, user=f"start of the service{whose}", method="Start", done=True,
        before="\n".join(f"{each.key}: {each.before}" for each in found),
        after="\n".join(f"{each.key}: {each.after}" for each in found),
        result=DONE,
    )  # fmt: skip


def revoked_change(change: RevokedChange, at_s: int) -> pb.OperatorChange:
    """The entry of another list of revoked certificates, or of one that was refused.

    The owner has no name here: whoever lets in connections waits for no directory of users.
    """
    return pb.OperatorChange(
        at_s=at_s, uid=-1, user=f"{change.path} of uid {change.uid}", method="Revoked",
        done=not change.problem, before=change.before, after=change.after,
        result=f"refused: {change.problem}" if change.problem else DONE,
    )  # fmt: skip


def _owner(file: Path) -> str:
    try:
        uid = file.stat().st_uid
    except OSError:
        return "an unknown user"
    return f"{user_name(uid)} (uid {uid})"


def _differing(key: str, former: Any, present: Any) -> Iterator[ChangedKey]:
    if former == present:
        return
    if isinstance(former, dict) and isinstance(present, dict):
        for name in former | present:
            inner = f"{key}.{name}" if key else str(name)
            yield from _differing(inner, former.get(name, _ABSENT), present.get(name, _ABSENT))
    elif isinstance(former, list) and isinstance(present, list) and len(former) == len(present):
        for at, pair in enumerate(zip(former, present, strict=True)):
            yield from _differing(f"{key}[{at}]", *pair)
    else:
        yield ChangedKey(key, _shown(former), _shown(present))


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "not set"
    text = json.dumps(value)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 3]}..."
