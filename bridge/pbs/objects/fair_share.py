# SPDX-License-Identifier: Apache-2.0
"""Fair share as pbs_sched computes it: shares in a tree, and usage that decays.

Terms
    entity      who uses: a user, group or account (`fairshare_entity`); a leaf of the tree.
    share       the part of the machine that an entity is to have, 0 to 1 (`fairshare_perc`).

Rules
    1. `resource_group` has lines `NAME ID PARENT SHARES`. The share of a member is its parent's,
       divided among its members by their shares. Entities that it does not name are members of the
       group `unknown`, with equal shares.
    2. What a job uses is the formula `fairshare_usage_res` over its requested resources and its
       elapsed time. It counts for its entity and all groups above. Nobody's usage is below 1.
    3. After each `fairshare_decay_time`, all usage is multiplied by `fairshare_decay_factor`.
    4. The usage of an entity that is compared (`fairshare_tree_usage`) is its own, drawn towards
       that of its group: u + (u of the group - u) times its part of the group's shares.

Deviates: cput counts as CPUs times elapsed time, as what jobs really used is not read. Entities of
different groups are compared by rule 4 throughout, not group by group from the root.

Source: OpenPBS 23.06, Administrator's Guide, Using Fairshare.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.formula import Formula
from bridge.pbs.objects.jobs import SUSPENDED, PbsJob
from bridge.pbs.objects.sched_config import SchedConfig
from bridge.pbs.tables import Attributes, text

ROOT, UNKNOWN = "root", "unknown"
MIN = 1.0
MAX = 1e12
MAX_MEMBERS = 100_000


@dataclass(frozen=True)
class Member:
    """A group or an entity: the group it belongs to, and its shares there."""

    parent: str
    shares: int


@lru_cache(maxsize=4)
def read_members(text: str | None) -> tuple[Mapping[str, Member], tuple[str, ...]]:
    """Reads resource_group; also returns what is not understood. None: there is no file."""
    found: dict[str, Member] = {}
    problems = []
    for number, line in enumerate((text or "").splitlines()[:MAX_MEMBERS], 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, parent = words[0], words[2] if len(words) > 2 else ""
        if len(words) < 4 or not words[3].isdecimal() or len(words[3]) > 9:
            problems.append(f"resource_group: line {number} is not NAME ID PARENT SHARES")
        elif parent != ROOT and parent not in found:
            problems.append(f"resource_group: line {number}: there is no group '{parent[:40]}'")
        elif name in found or name in (ROOT, UNKNOWN):
            problems.append(f"resource_group: line {number}: '{name[:40]}' is there twice")
        else:
            found[name] = Member(parent, int(words[3]))
    return found, tuple(problems)


@dataclass(frozen=True)
class Standing:
    """How an entity stands.

    Attributes:
        share: its part of the machine, 0 to 1.
        usage: what is compared (rule 4), in the units of the formula.
        tree_usage: the same as part of all usage.
    """

    share: float
    usage: float
    tree_usage: float

    @property
    def factor(self) -> float:
        """`fairshare_factor`: 1 for who used nothing, towards 0."""
        return math.pow(2.0, -min(self.tree_usage / self.share, 1000.0)) if self.share else 0.0


@dataclass
class FairShare:
    """The usage of all entities so far.

    Attributes:
        usage: by entity; groups are summed.
        decayed_s: when it decayed last, Unix seconds; 0: never.
        seen_s: until when usage is counted; 0: nothing is.
    """

    usage: dict[str, float] = field(default_factory=dict)
    decayed_s: int = 0
    seen_s: int = 0

    def restore(self, usage: Mapping[str, float], seen_s: int, decayed_s: int) -> None:
        """Goes on with the usage of an earlier life."""
        self.usage, self.seen_s, self.decayed_s = dict(usage), seen_s, decayed_s

    def observe(
        self, jobs: Iterable[tuple[PbsJob, Attributes]], config: SchedConfig, now_s: int
    ) -> None:
        """Counts what running jobs used since the last call, and lets all usage decay.

        Args:
            now_s: the clock.
        """
        since_s = self.seen_s or now_s
        for job, attributes in jobs:
            start_s = values.instant(text(attributes, "stime"))
            if not job.has_vnodes or job.state in SUSPENDED or not 0 < start_s < now_s:
                continue
            used = [
                usage_of(config.usage, job, float(max(at - start_s, 0))) for at in (since_s, now_s)
            ]
            entity = entity_of(job, attributes, config)
            self.usage[entity] = self.usage.get(entity, 0.0) + max(used[1] - used[0], 0.0)
        self.seen_s = now_s
        self.decayed_s = self.decayed_s or now_s
        if config.decay_s and now_s - self.decayed_s > config.decay_s:
            times = (now_s - self.decayed_s) // config.decay_s
            by = config.decay ** min(times, 1000)
            self.usage = {
                entity: left for entity, used in self.usage.items() if (left := used * by) > MIN
            }
            self.decayed_s += times * config.decay_s

    def standings(
        self, members: Mapping[str, Member], entities: Iterable[str], config: SchedConfig
    ) -> dict[str, Standing]:
        tree = _Tree(members, {*entities, *self.usage}, config, self.usage)
        return {entity: tree.standing(entity) for entity in entities}


class _Tree:
    def __init__(
        self, members: Mapping[str, Member], entities: Iterable[str], config: SchedConfig,
        usage: Mapping[str, float],
    ) -> None:  # fmt: skip
        unknown = Member(ROOT, config.unknown_shares)
        strangers = [name for name in entities if name not in members]
        self.members = {
            **members, UNKNOWN: unknown, **{name: Member(UNKNOWN, 1) for name in strangers}
        }  # fmt: skip
        self.sums: dict[str, int] = {}
        self.used: dict[str, float] = {}
        for member in self.members.values():
            self.sums[member.parent] = self.sums.get(member.parent, 0) + member.shares
        for name in entities:
            for above in (*self.path(name), ROOT):
                self.used[above] = self.used.get(above, MIN) + usage.get(name, 0.0)

    def path(self, name: str) -> list[str]:
        """A member and the groups above it, without the root."""
        found = [name]
        while (parent := self.members[found[-1]].parent) != ROOT:
            found.append(parent)
        return found

    def standing(self, name: str) -> Standing:
        whole = max(self.used.get(ROOT, MIN), MIN)
        share, factor, is_first = 1.0, 0.0, True
        for each in reversed(self.path(name)):
            member = self.members[each]
            total = self.sums[member.parent]
            part = member.shares / total if total else 0.0
            share *= part
            own = self.used.get(each, MIN) / whole
            factor = own if is_first else own + (factor - own) * part
            is_first = False
        return Standing(share, min(factor * whole, MAX), factor)


def entity_of(job: PbsJob, attributes: Attributes, config: SchedConfig) -> str:
    """Returns for whom a job counts."""
    owner = job.owner
    found = {
        "euser": owner.user, "egroup": owner.group, "queue": job.queue,
        "Account_Name": text(attributes, "Account_Name"),
    }.get(config.entity, "")  # fmt: skip
    return found or f"{owner.group}:{owner.user}"


def usage_of(formula: Formula, job: PbsJob, elapsed_s: float) -> float:
    """Returns what a job has used after some time, by the formula; 0: it has no value."""
    cpus = max(job.total.get("ncpus", 1.0), 1.0)
    variables = {**job.total, "walltime": elapsed_s, "cput": elapsed_s * cpus}
    try:
        return formula.value(variables)
    except BadRequest:
        return 0.0
