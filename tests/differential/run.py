# SPDX-License-Identifier: Apache-2.0
"""Runs one case on both clusters at the same time, and again if the outcomes differ."""

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tests.differential.cases import Case
from tests.differential.compare import Finding, Job, Outcome, compare, verdict, words_of
from tests.differential.stand import Stand, StandError
from tests.integration.slurm import expand

MORE_S = 2.5
"""How much longer both are watched if only one has started a job."""
PATIENCE = 2.0
"""How many times longer the second run waits for everything."""
ENDED_S = 10.0
"""How long jobs at least have to end, where their ends are watched."""


@dataclass(frozen=True)
class Row:
    """A case and its outcomes: one pair, or two if the first pair differed."""

    case: Case
    outcomes: tuple[tuple[Outcome, Outcome], ...]
    findings: tuple[Finding, ...]
    broken: str = ""

    @property
    def verdict(self) -> str:
        """The verdict of `compare.verdict`."""
        return verdict(list(self.findings), by_design=self.case.by_design,
                       unsupported=self.case.unsupported, broken=self.broken)  # fmt: skip

    @property
    def stock(self) -> str:
        """The last outcome there."""
        return str(self.outcomes[-1][0]) if self.outcomes else ""

    @property
    def bridge(self) -> str:
        """The last outcome there."""
        return str(self.outcomes[-1][1]) if self.outcomes else ""

    def differences(self) -> list[str]:
        """Lines for a person."""
        return [f"broken: {self.broken}"] if self.broken else [str(f) for f in self.findings]

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "topic": self.case.topic, "name": self.case.name, "submit": self.case.lines,
            "prepare": self.case.prepare, "then": self.case.then, "verdict": self.verdict,
            "by_design": self.case.by_design, "unsupported": self.case.unsupported,
            "broken": self.broken,
            "stock": self.stock, "bridge": self.bridge, "told": self.differences(),
            "findings": [asdict(finding) for finding in self.findings],
            "runs": [[asdict(one) for one in pair] for pair in self.outcomes],
        }  # fmt: skip


def run(
    case: Case, stock: Stand, bridge: Stand, pool: ThreadPoolExecutor, *, once: bool = False
) -> Row:
    """Runs a case, twice if the outcomes differ; then the second run counts.

    A slurmctld that the case has stopped is started again. If one has ended by itself, which Slurm
    24.11 does now and then when it is reconfigured, the case is run again.
    """
    row, revived = _run_and_revive(case, stock, bridge, pool, once)
    if row.broken and revived and not once:
        row, _ = _run_and_revive(case, stock, bridge, pool, once)
    return row


def _run_and_revive(
    case: Case, stock: Stand, bridge: Stand, pool: ThreadPoolExecutor, once: bool
) -> tuple[Row, bool]:
    try:
        row = _run(case, stock, bridge, pool, once)
    finally:
        revived = [stand.revive() for stand in (stock, bridge)]
    return row, any(revived)


def _run(case: Case, stock: Stand, bridge: Stand, pool: ThreadPoolExecutor, once: bool) -> Row:
    told: list[tuple[Outcome, Outcome]] = []
    findings: list[Finding] = []
    broken = ""
    for patience in (1.0,) if once else (1.0, PATIENCE):
        try:
            pair = _both(case, stock, bridge, pool, patience)
        except StandError as error:
            return Row(case, tuple(told), (), str(error))
        finally:
            if case.undo:
                for stand in (stock, bridge):
                    stand.ask("run", line=case.undo)
        told.append(pair)
        broken = pair[0].failed
        if broken:
            continue
        findings = compare(
            *pair, placement=case.placement, contiguous=case.contiguous, says=case.says,
            ignore=case.ignore,
        )  # fmt: skip
        if not findings:
            break
    return Row(case, tuple(told), () if broken else tuple(findings), broken)


def _both(
    case: Case, stock: Stand, bridge: Stand, pool: ThreadPoolExecutor, patience: float
) -> tuple[Outcome, Outcome]:
    stands = (stock, bridge)
    begun = list(pool.map(lambda stand: _begin(case, stand, patience), stands))
    failed = [one if isinstance(one, str) else "" for one in begun]
    if any(failed):
        return Outcome(failed=failed[0]), Outcome(failed=failed[1])
    ids = [one for one in begun if isinstance(one, int)]
    min_s = ENDED_S if case.watch == "ended" else 0.0
    bound_s = max(case.settle_s, min_s) * patience
    seen = list(pool.map(lambda a: _watch(case, *a, bound_s), zip(stands, ids, strict=True)))
    if seen[0]["settled"] != seen[1]["settled"]:
        # One of them may only be slow: both get the same time.
        bound_s = MORE_S * patience
        late = 0 if seen[1]["settled"] else 1
        again = _watch(case, stands[late], ids[late], bound_s)
        seen[late] = again | {"before": seen[late]["took_s"]}
    ended = list(pool.map(lambda a: _outcome(*a), zip(stands, seen, strict=True)))
    return ended[0], ended[1]


def _begin(case: Case, stand: Stand, patience: float) -> int | str:
    """Clears, prepares and submits; returns the last job id before the case, or an error."""
    cleared = stand.ask("clear")
    if "dirty" in cleared:
        raise StandError(f"{stand.name} cannot be cleared: {cleared['dirty']}")
    last = cleared["last"]
    if case.prepare:
        done = stand.ask("prepare", script=case.prepare, bound_s=5 * patience,
                         wait=case.prepare_waits)  # fmt: skip
        if done["failed"]:
            return f"{done['failed']}"
        last = max(last, done["last"])
    said = [
        stand.ask("submit", line=one.line, user=one.user, foreground=one.foreground)
        for one in case.submit
    ]
    stand.said = said
    if case.then:
        stand.ask("run", line=f"sleep {case.then_after_s * patience}")
        done = stand.ask("prepare", script=case.then, bound_s=5, wait=False)
        if done["failed"]:
            return f"then: {done['failed']}"
    return int(last)


def _watch(case: Case, stand: Stand, last: int, bound_s: float) -> dict[str, Any]:
    found: dict[str, Any] = stand.ask(
        "watch", after=last, count=len(case.submit), until=case.watch, bound_s=bound_s
    )
    return found


def _outcome(stand: Stand, seen: dict[str, Any]) -> Outcome:
    before_s = seen.get("before", 0.0)
    jobs = sorted(seen["jobs"], key=lambda j: (int(j["array"]), _number(j["task"]), int(j["id"])))
    # A pending task of an array shares its id with the others.
    details = stand.ask("detail", ids=sorted({j["id"] for j in jobs}))
    reaped = iter(stand.ask("reap"))
    said: Sequence[dict[str, Any]] = [one or next(reaped) for one in stand.said]
    tasks = Counter(job["array"] for job in jobs)
    arrays = {array: at for at, (array, count) in enumerate(tasks.items()) if count > 1}
    return Outcome(
        said=tuple((one["code"], words_of(one["err"] + one["out"])) for one in said),
        jobs=tuple(
            _job(
                job,
                details.get(job["id"], ""),
                seen["started_s"],
                before_s,
                arrays.get(job["array"]),
            )
            for job in jobs
        ),
        extra={"took_s": round(before_s + seen["took_s"], 2)},
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


def _job(
    job: dict[str, str], detail: str, started: dict[str, float], before_s: float, array: int | None
) -> Job:
    code = re.search(r"ExitCode=(\S+)", detail)
    waits = job["state"] == "PENDING"
    key = f"{job['id']}_{job['task']}"
    return Job(
        state=job["state"], reason=job["why"], nodes=0 if waits else int(job["nodes"]),
        cpus=0 if waits else int(job["cpus"]), placement="" if waits else job["list"],
        tres="" if waits else held(detail), exit_code=code[1] if code else "",
        started_s=None if key not in started else round(started[key] + before_s, 1), array=array,
    )  # fmt: skip


def held(detail: str) -> str:
    """Returns a job's memory and devices on all its nodes, without device types.

    AllocTRES is no substitute: it omits devices that are typed on one node and untyped on another.
    """
    found: Counter[str] = Counter()
    for nodes, mib in re.findall(r"\bNodes=(\S+) CPU_IDs=\S+ Mem=(\d+)", detail):
        found["mem"] += len(expand(nodes)) * int(mib)
    devices = re.search(r"\bJOB_GRES=(\S+)", detail)
    for name, amount in re.findall(r"(\w+)(?::\w+)?:(\d+\w?)", devices[1] if devices else ""):
        times = 1024 ** ("KMGT".index(amount[-1]) + 1) if amount[-1] in "KMGT" else 1
        found[name] += int(amount.rstrip("KMGT")) * times
    return ",".join(f"{name}={count}" for name, count in sorted(found.items()))
