# SPDX-License-Identifier: Apache-2.0
"""All exceptions. A job that cannot run is not an error; see `bridge.model.reasons.Reason`.

    BridgeError
    ├ ConfigError(key)           a configuration file, option or policy has an invalid value
    ├ TraceError(path, line)     a workload trace is malformed
    ├ RecordingError(path, field)  a recorded cycle is malformed
    ├ ResultError(path)          a kept result of an experiment is missing or malformed
    ├ RequestError(text, position)   a user's option cannot be parsed
    ├ BadRequest                 a job's request contradicts itself, or nothing could satisfy it
    ├ LineError(op, problem)     a peer of an elastic job sent a line that cannot be
    │  └ UnknownOp               it names an op that this side does not know
    ├ SnapshotError(field)       the controller's report is inconsistent: ask for a full one
    ├ PolicyError(policy)        the cycle falls back to conservative backfill and reports it
    │  ├ InvalidPlan(violations)
    │  └ ExtensionError(extension)  a stage of an extension failed: it is left out of the cycle
    └ ControllerError
       ├ Unreachable             no answer from the address
       ├ StaleSnapshot           belongs to an older generation or epoch
       └ UnsupportedVersion      the peer uses another version of the wire

`Overtime` is none of them: it is raised from outside, and means that code was interrupted.
Every message says in one line what is wrong, where, and how to correct it.
"""

from collections.abc import Sequence


class BridgeError(Exception):
    """Root of everything this package raises on purpose."""


class ConfigError(BridgeError):
    """A configuration value is unknown, of the wrong type, or out of range."""

    def __init__(self, key: str, problem: str, *, file: str | None = None) -> None:
        self.key, self.problem, self.file = key, problem, file
        super().__init__(": ".join(part for part in (file, key, problem) if part))


class TraceError(BridgeError):
    """A workload trace is truncated or malformed."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        super().__init__(f"{path}:{line}: {problem}" if line is not None else f"{path}: {problem}")


class RecordingError(BridgeError):
    """A recorded cycle is truncated, malformed, or contradicts itself."""

    def __init__(self, path: str, field: str, problem: str) -> None:
        self.path, self.field, self.problem = path, field, problem
        super().__init__(": ".join(part for part in (path, field, problem) if part))


class ResultError(BridgeError):
    """A kept result of an experiment is missing, malformed, or contradicts another one."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: {problem}")


class RequestError(BridgeError):
    """A job's request cannot be parsed; `position` is the offending character (0-based)."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text, self.position, self.problem = text, position, problem
        super().__init__(f"{problem} at character {position + 1} of '{text}'")


class BadRequest(BridgeError):
    """A job's request contradicts itself, or nothing could satisfy it."""


class LineError(BridgeError):
    """A line between agent, launcher and application is malformed; `op` is "" if it names none."""

    def __init__(self, op: str, problem: str) -> None:
        self.op, self.problem = op, problem
        super().__init__(f"{op}: {problem}" if op else problem)


class UnknownOp(LineError):
    """A line names an op that this side does not know; the sender may be newer."""


class SnapshotError(BridgeError):
    """The controller's state contradicts itself."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


class PolicyError(BridgeError):
    """A policy failed; the cycle continues with the conservative plan."""

    def __init__(self, policy: str, problem: str) -> None:
        self.policy, self.problem = policy, problem
        super().__init__(f"policy {policy}: {problem}")


class InvalidPlan(PolicyError):
    """A plan breaks the rules of `bridge.check.legality`."""

    def __init__(self, policy: str, violations: Sequence[object]) -> None:
        self.violations = tuple(violations)
        shown = "; ".join(str(violation) for violation in self.violations[:3])
        more = f" and {len(self.violations) - 3} more" if len(self.violations) > 3 else ""
        super().__init__(policy, f"illegal plan: {shown}{more}")


class ExtensionError(PolicyError):
    """A stage of an extension failed, whatever the policy; the cycle goes on without it."""

    def __init__(self, extension: str, problem: str) -> None:
        self.extension, self.policy, self.problem = extension, "", problem
        super(PolicyError, self).__init__(f"extension {extension}: {problem}")


class Overtime(Exception):
    """The guarded code exceeded its time limit."""


class ControllerError(BridgeError):
    """The other side of the wire is missing, outdated or inconsistent."""


class Unreachable(ControllerError):
    """No answer from the address."""


class StaleSnapshot(ControllerError):
    """The call belongs to an epoch or generation that has been replaced."""


class UnsupportedVersion(ControllerError):
    """The peer uses a version of the wire that this side does not support."""
