# SPDX-License-Identifier: Apache-2.0
"""One node: a host whose work is measured, at times beside a guest, under a policy that shares."""

import numpy as np

from bridge.extensions.sharing.histories import application
from bridge.extensions.sharing.orders import FLOOR
from bridge.extensions.sharing.pairs import NAME
from bridge.extensions.sharing.part import shared_of
from schedbridge_contracts.sharing import NOW_S, SHARING, a_guest, a_host, a_waiting_job, a_world
from tests.unit.policies.test_share import Cycles, quota_of

STEP_S = 5

HOST, GUEST = application("user", "host", 1), application("user", "job", 1)


class Machine:
    """One node: a host whose work is measured every `STEP_S`, and at times a guest.

    The host uses 2 CPUs alone, or what `own` says of the instant; beside a guest its rate is
    divided by 1 + what `harm` says of the guest's quota as a share of the node. A guest that does
    the same harm at any quota is bound by input and output: its quota does not change its CPU time.
    The host tells no progress unless `progress`.
    """

    def __init__(self, harm, *, share="pairs", site=SHARING, noise=0.0, seed=1, host=None):
        self.cycles = Cycles(share, site, seed=seed)
        self.harm, self.noise, self.rng = harm, noise, np.random.default_rng(seed)
        self.host = host or {}
        self.now_s, self.work_s, self.guest_s = NOW_S, 100.0, 0.0
        self.guest, self.quota = False, 0.0
        self.guest_name = "job"
        self.guest_id, self.began_s = "g0", NOW_S - 50
        self.jobs = ()
        self.extra = {}
        self.plans = []
        self.own = lambda _: 2.0
        self.io_bound = 0 < self.harm(FLOOR) == self.harm(1.0)

    def step(self, steps=1, by_s=STEP_S):
        """Lets time pass and plans; returns the last plan."""
        for _ in range(steps):
            slowed = 1 + (self.harm(self.quota) if self.guest else 0.0)
            noise = 1 + self.noise * float(self.rng.standard_normal())
            self.work_s += by_s * self.own(self.now_s) * noise / slowed
            self.guest_s += by_s * self.guest_cpus() if self.guest else 0.0
            self.now_s += by_s
            self.plans.append(self.cycles.run(self.world()))
            self._obey(self.plans[-1])
        return self.plans[-1]

    def guest_cpus(self):
        return 0.1 if self.io_bound else 4 * self.quota

    def world(self):
        measured = {"start_s": NOW_S - 100, "end_s": NOW_S + 9000, "measured_s": self.now_s}
        host = measured | {"busy_cpus": 2.0, "cpu_s": self.work_s} | self.host | self.extra
        running = [a_host(**host)]
        if self.guest:
            running.append(
                a_guest(id=self.guest_id, name=self.guest_name, cpu_s=self.guest_s,
                        end_s=self.now_s + 500, measured_s=self.now_s, start_s=self.began_s,
                        user=self.host.get("user", "user"), host_id=self.host.get("id", "h0"))
            )  # fmt: skip
        return a_world(running, [] if self.guest else self.jobs, nodes=1, now_s=self.now_s)

    def _obey(self, plan):
        quotas = quota_of(plan)
        if len(shared_of(plan).guest_starts):
            self.guest, self.guest_s, self.began_s = True, 0.0, self.now_s
            self.guest_id = str(self.jobs[0].id) if self.jobs else self.guest_id
        if self.guest:
            self.quota = quotas[self.guest_id] / 4000
        if len(shared_of(plan).requeues):
            self.guest = False

    def with_guest(self):
        """Measures the host alone, then lets a guest start."""
        self.step(4)
        self.jobs = (a_waiting_job(id="g0", cpus=4),)
        assert len(shared_of(self.step()).guest_starts) == 1
        self.jobs = ()
        return self

    def progress(self, done, by, steps):
        """As `step`, and the host's application tells its progress."""
        for _ in range(steps):
            done += by
            self.extra = {"progress": done}
            self.step()

    @property
    def known(self):
        return self.cycles.state.learnt_by(NAME).known


def harmless(quota):
    return 0.0


def harmful(quota):
    return 0.5


def by_quota(quota):
    """Nothing at the floor, much at a high quota."""
    return 0.0 if quota <= 0.1 else 0.4
