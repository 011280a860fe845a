# SPDX-License-Identifier: Apache-2.0
"""What was learnt about two jobs on a node, for operators; and the switch that ends sharing."""

import logging
from dataclasses import dataclass, replace

from bridge.extensions.sharing import exchange_text, switch
from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.experts import default_experts
from bridge.extensions.sharing.histories import application_of
from bridge.extensions.sharing.kept_learner import ASAX, read_learner
from bridge.extensions.sharing.pair_knowledge import CEILINGS, PAIRS, Entry, belief, pairs_in
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import rules_of, sharing_rules
from bridge.extensions.sharing.site_harm import SiteHarm, with_observations_of
from bridge.model.learnt import Learning, Learnt
from bridge.ports import State
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.pb import coscheduling_pb2 as pb
from bridge.safe_cycle.decider import Decider

_log = logging.getLogger(__name__)

MAX_PAIRS = 1000
_Order = pb.CoschedulingRequest


@dataclass(frozen=True)
class Coscheduling:
    """Answers operators.

    Attributes:
        cycles: cycles of the service.
        decider: whose state is shown and changed.
        switch: names the policy.
    """

    cycles: Cycles
    decider: Decider
    switch: PolicySwitch

    def exported(self) -> pb.CoschedulingReply:
        """What is known, with what was learnt as text."""
        reply, state = self.shown(), self.decider.state
        reply.text = exchange_text.written(state.learnt_by(PAIRS), state.learnt_by(ASAX))
        return reply

    def changed(self, request: pb.CoschedulingRequest) -> pb.CoschedulingReply:
        """Carries an order out; returns what is known then.

        Raises:
            ConfigError: what is to be imported does not fit.
        """
        cycles, decider = self.cycles, self.decider
        learnt: dict[str, Learnt] = {}
        if request.order == _Order.IMPORT:
            learnt = dict(zip((PAIRS, ASAX), exchange_text.read(request.text), strict=True))
        with cycles.lock:
            state = decider.state
            now_s = cycles.session.now_s
            if request.order == _Order.OFF:
                kept = state.learnt_by(switch.NAME)
                learnt = {switch.NAME: switch.turned_off(kept, now_s, by_policy=False)}
            elif request.order == _Order.ON:
                learnt = {switch.NAME: switch.turned_on(state.learnt_by(switch.NAME))}
            if request.order == _Order.IMPORT:  # not of files: running jobs, and harm to users
                learnt[PAIRS] = with_observations_of(learnt[PAIRS], state.learnt_by(PAIRS))
                for name in (PAIRS, ASAX):
                    learnt[name] = replace(learnt[name], running=state.learnt_by(name).running)
            decider.state = State(state.promises, {**state.learnt, **learnt})
        _log.info("co-scheduling: %s", _Order.Order.Name(request.order).lower())
        return self.shown()

    def shown(self, user: str = "") -> pb.CoschedulingReply:
        """What is known.

        Args:
            user: who sees guests and pairs with jobs of their own only; empty: an administrator.
        """
        cycles, state, site = self.cycles, self.decider.state, self.decider.site
        reply = pb.CoschedulingReply(policy=self.switch.spec.share.name)
        off_s = switch.off_since_s(state)
        if off_s is not None:
            reply.off_since_s = max(off_s, 1)
            reply.off_by_policy = switch.by_policy(state)
        reply.stopped_users.extend(
            each for each in sorted(switch.stopped_users(state)) if user in ("", each)
        )
        known, asax = state.learnt_by(PAIRS), state.learnt_by(ASAX)
        harm = SiteHarm(Learning(known))
        reply.mean_harm, reply.observations = harm.mean, round(harm.count)
        published = cycles.published
        if published is not None:
            reply.now_s = published.snapshot.now_s
            reply.partitions.extend(
                part.name
                for part in published.snapshot.partitions
                if part.shared and rules_of(sharing_rules(site), part.name) is not None
            )
            reply.guests.extend(_guests(cycles, user))
        reply.pairs.extend(_pairs(known, user))
        reply.experts.extend(_experts(asax))
        return reply


def _guests(cycles: Cycles, user: str) -> list[pb.RunningGuest]:
    """The guests of the last cycle; for a user, those of which host or guest is the user's."""
    published = cycles.published
    if published is None:
        return []
    running, part = published.snapshot.running, shared_of(published.plan)
    quotas = {
        job_id: (quota, weight)
        for job_id, quota, weight in zip(
            part.quotas.id.tolist(), part.quotas.milli_cpus_per_node.tolist(),
            part.quotas.weight.tolist(), strict=True,
        )
    }  # fmt: skip
    leaving = dict(zip(part.requeues.id.tolist(), part.requeues.reasons, strict=True))
    found = []
    for guest, host in sorted(pairs(running).items()):
        if user and user not in (running.user[guest], running.user[host]):
            continue
        job_id = str(running.id[guest])
        quota, weight = quotas.get(job_id, (0, 0))
        nodes = running.nodes[running.indptr[guest] : running.indptr[guest + 1]]
        found.append(
            pb.RunningGuest(
                job_id=job_id, user=running.user[guest], name=running.name[guest],
                host_job_id=running.host_id[guest], nodes=published.nodes.fold(nodes),
                quota_milli_cpus=quota, weight=weight, requeued=leaving.get(job_id, ""),
            )
        )  # fmt: skip
    return found


def _pairs(known: Learnt, user: str) -> list[pb.SharedPair]:
    found = []
    for apps, entry in pairs_in(known.known).items():
        if not user or user in (application_of(app)[0] for app in apps):
            found.append((sum(one.count for one in entry.seen), apps, entry))
    found.sort(key=lambda each: -each[0])
    return [_pair(known, apps, entry) for _, apps, entry in found[:MAX_PAIRS]]


def _pair(known: Learnt, apps: tuple[str, str], entry: Entry) -> pb.SharedPair:
    (host_user, host_name, nodes), (guest_user, guest_name, _) = map(application_of, apps)
    return pb.SharedPair(
        host_user=host_user, host_name=host_name, guest_user=guest_user, guest_name=guest_name,
        node_count=nodes, guest_cpus=entry.guest_cpus, ceilings=_ceilings(known, apps, entry),
    )  # fmt: skip


def _ceilings(known: Learnt, apps: tuple[str, str], entry: Entry) -> list[pb.CeilingHarm]:
    found = []
    for ceiling, seen in zip(CEILINGS, entry.seen, strict=True):
        expected = belief(known.known, apps, ceiling, 1.0)
        found.append(
            pb.CeilingHarm(
                ceiling_percent=ceiling, observations=seen.count, harm=seen.harm,
                expected=expected.mean, at_most=expected.at_most,
            )
        )  # fmt: skip
    return found


def _experts(asax: Learnt) -> list[pb.SharingExpert]:
    experts = default_experts()
    learner = read_learner(asax, len(experts))
    return [
        pb.SharingExpert(name=expert.name, weight=weight, risk=risk)
        for expert, weight, risk in zip(
            experts, learner.weights().tolist(), learner.risk.tolist(), strict=True
        )
    ]
