# SPDX-License-Identifier: Apache-2.0
"""Short jobs per second, and the controller's CPU time per job.

Jobs of one whole node that run `true`, submitted as fast as one client can. On a small machine the
rate is bounded by the nodes' own daemons, which share its CPUs; the scheduler's part is the CPU
time of slurmctld and of the service per job, including submission and completion.
"""

import time

from cluster_bench.meters import cost_of_jobs
from cluster_bench.stand import BenchError, Stand, job_line


def measure(stand: Stand, *, jobs: int, bound_s: float) -> dict[str, object]:
    """Jobs per second from the first submission to the last end, and CPU per job, ms."""
    stand.wait_idle()
    meters = stand.meters()
    before = meters.read()
    submitted = stand.submit([job_line(1, 5, "true")] * jobs)
    mine = {job.job_id for job in submitted}
    deadline = time.monotonic() + bound_s
    # Read the log rarely and do not query the controller, to keep the measurement undisturbed.
    while len(ended := {j: t for j, t in stand.done_ns().items() if j in mine}) < jobs:
        if time.monotonic() > deadline:
            raise BenchError(f"{len(ended)} of {jobs} jobs ended within {bound_s:.0f} s")
        time.sleep(2)
    after = meters.read()
    stand.wait_idle()
    elapsed_s = (max(ended.values()) - submitted[0].called_ns) / 1e9
    submitting_s = (submitted[-1].returned_ns - submitted[0].called_ns) / 1e9
    return {
        "jobs": jobs,
        "elapsed_s": round(elapsed_s, 2),
        "jobs_per_s": round(jobs / elapsed_s, 1),
        "submissions_per_s": round(jobs / submitting_s, 1),
        **cost_of_jobs(before, after, jobs),
    }
