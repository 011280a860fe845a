# SPDX-License-Identifier: Apache-2.0
"""Recordings: complete cycles that can be planned again by any policy anywhere.

Terms
    recording   snapshot, state before the cycle, policy, rules of the site, seed, and resulting
                plan.
    file        one recording as gzipped JSON, `*.cycle.json.gz`; `zcat FILE | jq .snapshot` reads
                it. `bridge.recording.tables_text` defines how columns are written.

Rules
    1. `decode(encode(x)) == x`, column by column, except for parts of the state that can be
       recomputed: caches of predictors. A kept plan is written as the service saves it
       (`bridge.planning.scheduler.kept_plan`).
    2. Files are untrusted: they are data, never executed, and a file that does not fit the tables
       or contradicts itself is refused with file, field and problem.
    3. The memory that a file needs is bounded (`MAX_MEMORY_BYTES`), and counted before it is used.
    4. A file of an older version is read as long as its fields are known; one of a newer version
       is refused. In version 1 limits, FreePools and protections are parameters of the policy.
    5. The same recording gives the same bytes.
"""

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from bridge import files, json_text
from bridge.errors import RecordingError
from bridge.model.job import JobTable
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.model.node import NodeTable
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec, StageSpec
from bridge.model.snapshot import Snapshot
from bridge.planning.scheduler.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.ports import Promises, State
from bridge.recording.sound import unsound
from bridge.recording.tables_text import KEYS, Wrong, from_plain, to_plain

FORMAT, VERSION = "schedbridge cycle", 2
SUFFIX = ".cycle.json.gz"
MAX_MEMORY_BYTES: Final = 512 * files.MIB
"""Memory that the text, the values and the columns of a file may need together, bytes: that of some
200,000 jobs that differ in every column."""

KEYS[Plan.__name__, "predicted"] = "believed"
KEYS[JobTable.__name__, "min_time_s"] = "least_time_s"
KEYS[JobTable.__name__, "min_start"] = "least_start"
KEYS[JobTable.__name__, "max_start"] = "most_start"
KEYS[NodeTable.__name__, "power"] = "power_saving"
"""These keys are older than the names; they stay, so that older recordings can be read."""
_PIECE: Final = 1 << 20
_KEPT_PLAN: Final = "kept_plan"
_LEARNT: Final = dict[str, dict[str, list[int]]]
_STATE: Final[Mapping[str, Any]] = {
    "by": str, "planned_start_s": dict[str, int], "learnt": _LEARNT, "followed": _LEARNT,
}  # fmt: skip
"""Name and hint of each part of a state in a file, besides the kept plan."""


@dataclass(frozen=True)
class Recording:
    """One cycle.

    Attributes:
        state: the state of the policy, before the cycle.
        seed: the seed of all random numbers; the cycle's own is drawn from it and the snapshot's
            generation.
        origin: source of the recording, as text: the trace, its acknowledgement, the system.
        path: the file it was read from; empty: none.
        planning: the rules of the site, in the form of the configuration's section `planning`.
    """

    snapshot: Snapshot
    state: State
    policy: PolicySpec
    seed: int
    plan: Plan
    origin: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    planning: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return Path(self.path).name.removesuffix(SUFFIX)


# ------------------------------------------------------------ write


def encode(recording: Recording) -> bytes:
    parts = {
        "format": FORMAT,
        "version": VERSION,
        "origin": to_plain(recording.origin, Mapping[str, str]),
        "seed": recording.seed,
        "policy": to_plain(recording.policy, PolicySpec),
        "planning": to_plain(recording.planning, Mapping[str, object]),
        "memory": _state_to_plain(recording.state),
        "snapshot": to_plain(recording.snapshot, Snapshot),
        "plan": to_plain(recording.plan, Plan),
    }
    body = BytesIO()
    with gzip.GzipFile(fileobj=body, mode="wb", mtime=0) as stream:
        stream.write(b"{")
        # Part by part and column by column, so that the service stays responsive.
        for at, (name, part) in enumerate(parts.items()):
            stream.write(b",\n" * bool(at) + f'"{name}":'.encode())
            for text in _pieces(part):
                stream.write(text.encode("utf-8", "surrogatepass"))
        stream.write(b"}\n")
    return body.getvalue()


def _pieces(part: Any, depth: int = 2) -> Iterator[str]:
    if depth == 0 or not isinstance(part, dict):
        yield json.dumps(part, separators=(",", ":"), allow_nan=False)
        return
    yield "{"
    for at, (name, value) in enumerate(part.items()):
        yield f"{',' * bool(at)}{json.dumps(name)}:"
        yield from _pieces(value, depth - 1)
    yield "}"


def write_recording(path: Path, recording: Recording) -> None:
    """Writes the file.

    Raises:
        RecordingError: it cannot be written.
    """
    try:
        path.write_bytes(encode(recording))
    except OSError as error:
        raise RecordingError(str(path), "", f"cannot be written: {error.strerror}") from None


def _state_to_plain(state: State) -> dict[str, Any]:
    promises, learnt = state.promises, state.learnt.items()
    plain: dict[str, Any] = {
        "by": promises.by,
        "planned_start_s": to_plain(promises.start_s, _STATE["planned_start_s"]),
        "learnt": to_plain({name: dict(one.known) for name, one in learnt}, _LEARNT),
        "followed": to_plain({name: dict(one.running) for name, one in learnt}, _LEARNT),
    }
    if isinstance(promises.kept_plan, KeptPlan):
        plain[_KEPT_PLAN] = b64encode(to_bytes(promises.kept_plan)).decode()
    return plain


# ------------------------------------------------------------ read


def read_recording(path: Path) -> Recording:
    """Reads an untrusted file.

    Raises:
        RecordingError: it cannot be read, or is not a valid recording.
    """
    try:
        raw = files.read_bytes(path, MAX_MEMORY_BYTES)
    except OSError as error:
        raise RecordingError(str(path), "", f"cannot be read: {error.strerror}") from None
    return decode(raw, str(path))


def decode(raw: bytes, path: str = "") -> Recording:
    """The recording of a file's bytes.

    Args:
        raw: the bytes.
        path: the file, for messages.

    Raises:
        RecordingError: they are not a valid recording.
    """
    budget = files.MemoryBudget(MAX_MEMORY_BYTES)
    try:
        return _decode(_inflate(raw, budget), path, budget)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise RecordingError(path, "", "is cut off or damaged: fetch the file again") from None
    except OSError as error:
        raise RecordingError(path, "", f"cannot be read: {error.strerror}") from None


def _decode(text: bytes, path: str, budget: files.MemoryBudget) -> Recording:
    try:
        data = json_text.load(text, budget)
    except ValueError:
        raise RecordingError(path, "", "is not a recorded cycle: its text is not JSON") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise RecordingError(path, "format", f'must be "{FORMAT}"')
    if data.get("version") not in range(1, VERSION + 1):
        raise RecordingError(
            path,
            "version",
            f"is {data.get('version')!r:.20}; this schedbridge reads 1 to {VERSION}",
        )
    try:
        policy, planning = _policy_and_planning(data)
        recording = Recording(
            snapshot=from_plain(data.get("snapshot"), Snapshot, "snapshot", budget=budget),
            state=_state_from_plain(data.get("memory")),
            policy=policy,
            planning=planning,
            seed=from_plain(data.get("seed"), int, "seed"),
            plan=from_plain(data.get("plan"), Plan, "plan", budget=budget),
            origin=from_plain(data.get("origin", {}), Mapping[str, str], "origin"),
            path=path,
        )
    except Wrong as error:
        raise RecordingError(path, error.field, error.problem) from None
    except RecursionError:
        raise RecordingError(path, "", "is nested too deeply") from None
    if recording.seed < 0:
        raise RecordingError(path, "seed", "must be 0 or more")
    if found := unsound(recording.snapshot, recording.plan):
        raise RecordingError(path, *found)
    return recording


def _inflate(raw: bytes, budget: files.MemoryBudget) -> bytes:
    """The text; refused as soon as its values would need too much memory."""
    pieces, needed = [raw], json_text.needed_bytes(raw)
    if raw.startswith(b"\x1f\x8b"):
        pieces, needed = [], 0
        with gzip.open(BytesIO(raw)) as stream:
            while needed <= budget.limit and (piece := stream.read(_PIECE)):
                pieces.append(piece)
                needed += json_text.needed_bytes(piece)
    files.MemoryBudget(budget.limit).take(needed)
    return b"".join(pieces)


def _state_from_plain(data: Any) -> State:
    if not isinstance(data, dict):
        raise Wrong("memory", "is missing")
    found: dict[str, Any] = {}
    kept = None
    for name, value in data.items():
        if name == _KEPT_PLAN:
            kept = _kept_plan(value)
            continue
        if name not in _STATE:
            raise Wrong(f"memory.{name[:40]}", "is an unknown field: from a newer version?")
        found[name] = from_plain(value, _STATE[name], f"memory.{name}")
    known, running = found.get("learnt", {}), found.get("followed", {})
    learnt = {
        name: Learnt(Layers(known.get(name)), Layers(running.get(name)))
        for name in {**known, **running}
    }
    return State(
        Promises(found.get("by", ""), found.get("planned_start_s", {}), kept),
        learnt,
    )


def _policy_and_planning(data: dict[str, Any]) -> tuple[PolicySpec, Mapping[str, object]]:
    """The policy and the rules of the site; in version 1 the policy stated these."""
    spec = from_plain(data.get("policy"), PolicySpec, "policy")
    if data["version"] > 1:
        return spec, from_plain(data.get("planning", {}), Mapping[str, object], "planning")
    plan = dict(spec.plan.parameters)
    rules, protect = plan.pop("rules", None), plan.pop("protect", None)
    for key, value in (("rules", rules), ("protect", protect)):
        if not isinstance(value, dict | None):
            raise Wrong(f"policy.plan.{key}", "is not a mapping")
    planning = {**(rules or {}), **({"protect": protect} if protect else {})}
    return replace(spec, plan=StageSpec(spec.plan.name, plan)), planning


def _kept_plan(value: Any) -> KeptPlan:
    try:
        return from_bytes(b64decode(from_plain(value, str, "memory.kept_plan"), validate=True))
    except Wrong:
        raise
    except ValueError as error:
        raise Wrong("memory.kept_plan", f"cannot be used: {error}") from None


def find_recordings(directory: Path) -> list[Path]:
    """The files in a directory tree, by name.

    Raises:
        RecordingError: there is no such directory, or no recording in it.
    """
    if not directory.is_dir():
        raise RecordingError(str(directory), "", "is not a directory")
    found = sorted(directory.rglob(f"*{SUFFIX}"))
    if not found:
        raise RecordingError(
            str(directory),
            "",
            f"holds no recording (*{SUFFIX}): 'schedbridge lab record' makes some",
        )
    return found
