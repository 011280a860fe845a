# SPDX-License-Identifier: Apache-2.0
"""The wait of a job on an idle cluster: from the call that submits it to its allocation.

Single-node jobs with random gaps between them, because fixed gaps lock onto Slurm's one-second
loop. The waiting time begins when the client calls (so that it contains the submission itself) and
ends with the line slurmctld logs when it has allocated the nodes; both use the same clock.
"""

import random

from cluster_bench.figures import spread
from cluster_bench.meters import load_between
from cluster_bench.stand import BenchError, Stand, job_line

_GAP_S = (0.3, 1.5)


def measure(stand: Stand, *, jobs: int, seed: int) -> dict[str, object]:
    """Submits `jobs` jobs; milliseconds from the call, and from the answer, to the allocation."""
    rng = random.Random(seed)
    instants_s = [1.0]
    while len(instants_s) < jobs:
        instants_s.append(instants_s[-1] + rng.uniform(*_GAP_S))
    stand.wait_idle()
    meters = stand.meters()
    before = meters.read()
    submitted = stand.submit(
        [job_line(1, 5, "true", at_s) for at_s in instants_s], timeout_s=instants_s[-1] + 120
    )
    stand.wait_idle()
    load = load_between(before, meters.read())
    allocated = stand.allocated_ns()
    missing = [job.job_id for job in submitted if job.job_id not in allocated]
    if missing:
        raise BenchError(f"no allocation in slurmctld's log for {len(missing)} jobs: {missing[:5]}")
    return {
        "submit_to_allocation_ms": spread(
            [(allocated[job.job_id] - job.called_ns) / 1e6 for job in submitted]
        ),
        "answer_to_allocation_ms": spread(
            [max(0.0, (allocated[job.job_id] - job.returned_ns) / 1e6) for job in submitted]
        ),
        "load": load,
    }
