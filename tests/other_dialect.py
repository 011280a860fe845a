# SPDX-License-Identifier: Apache-2.0
"""A made-up resource manager, to show that the service needs nothing but a dialect of it."""

from dataclasses import dataclass

import numpy as np

from bridge.dialect import ControllerRequest, Words

ARRAY = "[].srv"
WORDS = Words("queue", "-l walltime", 1, "qrls", "qalter -a", "nobody")


@dataclass(frozen=True)
class OtherDialect:
    """Array `12[].srv` has the tasks `12[3].srv`; a partition is a queue."""

    words: Words = WORDS

    def array_of(self, job_id):
        head, bracket, _ = job_id.partition("[")
        return head + ARRAY if bracket else job_id

    def are_array_tasks(self, job_ids):
        return np.array([job_id[-len(ARRAY) :] != ARRAY and "[" in job_id for job_id in job_ids])

    def controller_request(self, request, generic):
        return ControllerRequest(1, request.n_chunks, request.n_chunks, request.kinds[0].ncpus)

    def chunk_features(self, request, chunk, generic):
        return frozenset(chunk.features)

    def chunk_memory_mib(self, request, chunk, cpus):
        return chunk.mem_mib

    def submit_options(self, change):
        stated = [f"-q {change.partition}"] if change.partition else []
        if change.time_limit_s:
            stated.append(f"-l walltime={change.time_limit_s}")
        return " ".join(stated)

    def reserve_command(self, reservation):
        return f"pbs_rsub -N {reservation.name}"


OTHER = OtherDialect()
