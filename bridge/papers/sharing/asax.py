# SPDX-License-Identifier: Apache-2.0
"""ASA_X: CPU quotas for guests, learnt by a mixture of experts from overruns of time limits.

Terms
    choice a quota drawn from the mixture for the present state of a host; its loss is not known
    yet. loss of a job that shared its nodes and has ended: by how much it overran its time limit,
             0 to 1 (`bridge.extensions.sharing.observation.overrun_loss`).

Rules
    1. Outer loop: hosts with nodes that have no guest are taken in the order of the running jobs.
       A choice (`bridge.extensions.sharing.learner`, rule 1) is made for each that is measured and
       has an admissible guest among the waiting jobs, and then for each further guest. At 0 % the
       next host follows; a new choice is made for this one when something was learnt, or after
       `ask_again_s`.
    2. The guest is the first waiting job, in the order of the plan, that is admissible there (first
       fit). It starts on all its nodes at once, and has one host. Other jobs planned on these nodes
       are planned again: their starts may move.
    3. When a guest ends, the learner gets its loss for the last choice made for it. When a host
       ends, the learner gets its loss for the last choice made for each of its present guests;
       without a guest, for the last choice made for the host. A job killed at its limit has a loss
       of 1.
    4. Inner loop: a host gets one guest after the other until its losses, and those of its guests,
       sum to `threshold`. Then it gets no further one; its sum is reset.
    5. When something was learnt, new quotas are chosen for all running guests.
    6. `bridge.extensions.sharing.safety` requeues guests when memory is short, and limits them
       while their hosts are not measured.

Source: A. Souza, K. Pelckmans, J. Tordsson, A HPC co-scheduler with reinforcement learning,
JSSPP 2021, sections 3 and 4, Algorithm 1.
Deviates: our copy lacks the equations and the algorithm; `bridge.extensions.sharing` defines the
learner, the experts and the happiness. The text does not say whose overrun is the loss: here both
jobs have a loss when they end, and a host with several guests has one for each, as each has its
own choice. The text does not say what happens to a running guest for which 0 % is drawn: here it
keeps the least positive quota. The overrun of a killed job cannot be seen, hence rule 3. Hosts have
no quota, as they get what their guests leave. The site decides on consent, memory and scope.
Hosts that are not measured get no guest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bridge.errors import ConfigError
from bridge.extensions.sharing import left_hosts
from bridge.extensions.sharing.counting import has_guests, pairs
from bridge.extensions.sharing.experts import QUOTAS_PERCENT, Expert, default_experts
from bridge.extensions.sharing.histories import applications, follow, history_of
from bridge.extensions.sharing.kept_keys import APART
from bridge.extensions.sharing.kept_learner import ASAX, TINY, read_learner, write_learner
from bridge.extensions.sharing.learner import THRESHOLD, Choice, HostRound
from bridge.extensions.sharing.observation import Observation, overrun_loss
from bridge.extensions.sharing.orders import Orders, cpus_of
from bridge.extensions.sharing.safety import keep_safe
from bridge.extensions.sharing.seen import observed
from bridge.extensions.sharing.slots import Slots
from bridge.extensions.sharing.stage_share import NOTHING_SHARED, Shared
from bridge.extensions.sharing.switch import off_since_s, send_away
from bridge.model.job import EndedTable, Ending
from bridge.model.learnt import Learning
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Context
from bridge.units import NEVER

NAME: Final = ASAX
_HOST, _GUEST, _REQUESTED = "host", "guest", "asked"
_MIN_PERCENT: Final = QUOTAS_PERCENT[1]


@dataclass(frozen=True)
class AsaX:
    """The paper's policy.

    Attributes:
        threshold: sum of losses at which a host gets no further guest.
        ask_again_s: time after which a new choice is made for a host for which 0 % was drawn, s.
    """

    threshold: float = THRESHOLD
    ask_again_s: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1000:
            raise ConfigError("threshold", "must be above 0 and at most 1000")
        if self.ask_again_s < 1:
            raise ConfigError("ask_again_s", "must be at least 1")

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Learns, and starts guests; see `SharePolicy`."""
        snapshot = world()
        slots = Slots(snapshot, context.site, plan, delays=True)
        if not slots.open and not has_guests(snapshot.running):
            return NOTHING_SHARED
        learning = Learning(context.state.learnt_by(NAME))
        kept = Learning(context.state.learnt_by(left_hosts.NAME))
        left = left_hosts.LeftHosts(kept, snapshot.now_s)
        cycle = _Cycle(self, slots, learning, context.rng)
        off = off_since_s(context.state) is not None
        cycle.learn()
        stay = send_away(slots, cycle.orders, off=off)
        cycle.guide(keep_safe(slots, cycle.orders, stay, left))
        if not off:
            cycle.start(left.pausing(snapshot, plan))
        cycle.forget()
        left.forget({*snapshot.running.id.tolist(), *snapshot.jobs.id.tolist()})
        return Shared(
            quotas=cycle.orders.quotas(),
            requeues=cycle.orders.requeues(),
            learnt={NAME: learning.done(), left_hosts.NAME: kept.done()},
            again_s=NEVER if off else min(slots.look_again_s, cycle.ask_again_s),
            guests=cycle.starts,
            delays=True,
        )


@dataclass
class _Cycle:
    policy: AsaX
    slots: Slots
    learning: Learning
    rng: np.random.Generator
    experts: Sequence[Expert] = field(default_factory=default_experts)

    def __post_init__(self) -> None:
        self.snapshot = self.slots.snapshot
        self.orders, self.starts = Orders(self.snapshot), []  # type: ignore[var-annotated]
        self.ask_again_s = NEVER
        self.learner, self.learnt = read_learner(self.learning, len(self.experts)), False
        self.apps = applications(self.snapshot, self.learning)

    def learn(self) -> None:
        """Rule 3, and the demands of applications."""
        follow(self.snapshot, self.apps, self.learning)
        ended = self.snapshot.ended
        for row, job_id in enumerate(ended.id.tolist()):
            loss = _loss(ended, row)
            for key in (_key(_GUEST, job_id), _key(_HOST, job_id)):
                numbers = self.learning.running.get(key)
                if numbers is None or loss is None or len(numbers) != 4 + len(self.experts):
                    continue
                for choice in self._choices(key, numbers):
                    self.learner = self.learner.told(choice, loss)
                self.learnt = True
                self._add_to_round(key, numbers, loss)
        if self.learnt:
            write_learner(self.learning, self.learner)

    def _choices(self, key: str, numbers: list[int]) -> list[Choice]:
        """The choices whose loss follows from the end of a job (rule 3)."""
        if not key.startswith(_HOST + APART):
            return [_choice(numbers)]
        kept = (
            self.learning.running.get(each)
            for each in self.learning.running.in_order()
            if each.startswith(_GUEST + APART)
        )
        found = [_choice(one) for one in kept if one is not None and one[3] == numbers[3]]
        return found or [_choice(numbers)]

    def _add_to_round(self, key: str, numbers: list[int], loss: float) -> None:
        """Rule 4: a guest's loss counts for its host."""
        for other in self.learning.running.in_order() if key.startswith(_GUEST) else ():
            found = self.learning.running.get(other)
            if other.startswith(_HOST + APART) and found is not None and found[3] == numbers[3]:
                before = HostRound(found[0] * TINY, bool(found[1]))
                after = before.after(loss, self.policy.threshold)
                self.learning.running[other] = [
                    round(after.loss / TINY), int(after.closed), *found[2:],
                ]  # fmt: skip

    def guide(self, guests: set[int]) -> None:
        """Rule 5: quotas of the guests that stay."""
        running = self.snapshot.running
        host_of = pairs(running)
        for row in sorted(guests):
            job_id, key = str(running.id[row]), _key(_GUEST, str(running.id[row]))
            numbers = self.learning.running.get(key)
            percent = numbers[2] if numbers else _MIN_PERCENT
            seen = self._seen(host_of[row]) if self.learnt or numbers is None else None
            if seen is not None:
                choice = self.learner.choose(self.experts, seen, self.rng)
                percent = max(choice.quota_percent, _MIN_PERCENT)
                self._note(str(running.id[host_of[row]]), job_id, choice, percent)
            self.orders.limit(job_id, cpus_of(self.snapshot, row), percent / 100)

    def start(self, taken: set[int]) -> None:
        """Starts the first admissible waiting job beside each host (rules 1 and 2).

        Args:
            taken: rows of jobs that may not be guests.
        """
        for host in self.slots.hosts:
            job_id = str(self.snapshot.running.id[host.row])
            seen = self._seen(host.row)
            if seen is None:
                continue
            if not self._asks(job_id):
                if not self._is_closed(job_id) and any(self.slots.guests(host)):
                    self._ask_later(job_id)
                continue
            for guest in self.slots.first_fit(host, taken):
                choice = self.learner.choose(self.experts, seen, self.rng)
                if choice.quota_percent == 0:
                    taken.discard(guest.row)
                    self.learning.running[_key(_REQUESTED, job_id)] = [self.snapshot.now_s]
                    self._ask_later(job_id)
                    break
                self.starts.append(self.slots.start(guest))
                name = self.starts[-1].job_id
                self._note(job_id, name, choice, choice.quota_percent)
                self.orders.limit(name, guest.cpus, choice.quota_percent / 100)

    def _asks(self, host_id: str) -> bool:
        """Whether a choice is to be made for a host now."""
        if self._is_closed(host_id):
            return False
        requested = self.learning.running.get(_key(_REQUESTED, host_id))
        if requested is None or self.learnt:
            return True
        return self.snapshot.now_s - requested[0] >= self.policy.ask_again_s

    def _is_closed(self, host_id: str) -> bool:
        found = self.learning.running.get(_key(_HOST, host_id))
        return found is not None and bool(found[1])

    def _ask_later(self, host_id: str) -> None:
        requested = self.learning.running.get(_key(_REQUESTED, host_id)) or [self.snapshot.now_s]
        self.ask_again_s = min(self.ask_again_s, requested[0] + self.policy.ask_again_s)

    def _seen(self, row: int) -> Observation | None:
        return observed(self.snapshot, row, history_of(self.learning, self.apps[row]))

    def _note(self, host_id: str, guest_id: str, choice: Choice, percent: int) -> None:
        """Keeps a choice for both jobs; the pair's number is that of the host."""
        advice = [round(each / TINY) for each in choice.advice.tolist()]
        key = _key(_HOST, host_id)
        before = self.learning.running.get(key) or [0, 0, 0, _number(host_id)]
        self.learning.running[key] = [*before[:2], percent, before[3], *advice]
        self.learning.running[_key(_GUEST, guest_id)] = [0, 0, percent, before[3], *advice]

    def forget(self) -> None:
        """Drops the records of jobs that are gone."""
        here = {*self.snapshot.running.id.tolist(), *(each.job_id for each in self.starts)}
        for key in self.learning.running.in_order():
            kind, _, job_id = key.partition(APART)
            if kind in (_HOST, _GUEST, _REQUESTED) and job_id not in here:
                self.learning.running.pop(key)


def _key(kind: str, job_id: str) -> str:
    return kind + APART + job_id


def _number(host_id: str) -> int:
    """A number that identifies a host."""
    found = 0
    for letter in host_id.encode():
        found = (found * 257 + letter + 1) % (2**52)
    return found


def _choice(numbers: list[int]) -> Choice:
    return Choice(numbers[2], np.array(numbers[4:], dtype=np.float64) * TINY)


def _loss(ended: EndedTable, row: int) -> float | None:
    """The loss of an ended job (rule 3); None: unknown."""
    ending, limit_s = Ending(int(ended.ending[row])), int(ended.time_limit_s[row])
    if ending is Ending.TIMEOUT:
        return 1.0
    if not ending.by_itself or ending is Ending.CANCELLED or limit_s <= 0:
        return None
    return overrun_loss(float(ended.end_s[row] - ended.start_s[row]), float(limit_s))
