# SPDX-License-Identifier: Apache-2.0
"""Replays a trace in AccaSim and prints when each job started, as JSON.

Runs in a separate environment with AccaSim and without this project:
`run_accasim.py TRACE PROCESSORS shipped|textbook DIRECTORY`.

shipped     AccaSim's own `EASYBackfilling`. It backfills every job that fits now, whether or not
                it would delay the reserved one (it passes its allocator an empty list of reserved
                nodes), and tries the reserved job again only when its reservation is due.
    textbook    the two rules of Lifka (JSSPP 1995) on AccaSim's interface: the reservation is
                recomputed at every decision, and a job is backfilled if it ends before it or fits
                on the other nodes.

The machine is one node with as many cores as there are processors, AccaSim's fastest configuration.
"""

import collections
import collections.abc
import json
import sys
import time
from pathlib import Path

# AccaSim imports the abstract classes from here, which worked until Python 3.9.
collections.Mapping = collections.abc.Mapping

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, SchedulerBase  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402


class Textbook(SchedulerBase):
    """EASY backfilling of counts."""

    name = "textbook"

    def get_id(self):
        """Names the dispatcher."""
        return self.name

    def scheduling_method(self, cur_time, queued_jobs, es_dict):
        """Decides: (now, job, nodes) for a start, (None, job, []) for a wait."""
        manager = self.resource_manager
        free = sum(node["core"] for node in manager.current_availability.values())
        ends = [
            (max(job.start_time + job.expected_duration, cur_time + 1), job.requested_nodes)
            for job in (es_dict[job_id] for job_id in manager.current_allocations)
        ]
        decided, waiting = [], list(queued_jobs)
        while waiting and waiting[0].requested_nodes <= free:
            job = waiting.pop(0)
            free -= job.requested_nodes
            ends.append((cur_time + job.expected_duration, job.requested_nodes))
            decided.append((cur_time, job.id, self._nodes(job)))
        if not waiting:
            return decided, []
        head = waiting.pop(0)
        decided.append((None, head.id, []))
        shadow, spare = self._shadow(head, free, sorted(ends))
        for job in waiting:
            wants = job.requested_nodes
            early = cur_time + job.expected_duration <= shadow
            if wants <= free and (early or wants <= spare):
                free -= wants
                spare -= 0 if early else wants
                decided.append((cur_time, job.id, self._nodes(job)))
            else:
                decided.append((None, job.id, []))
        return decided, []

    @staticmethod
    def _shadow(head, free, ends):
        """The latest start of the head, and the processors that it then leaves free."""
        at = 0
        while at < len(ends):
            shadow = ends[at][0]
            while at < len(ends) and ends[at][0] == shadow:
                free += ends[at][1]
                at += 1
            if free >= head.requested_nodes:
                return shadow, free - head.requested_nodes
        raise ValueError("the head fits no machine")

    def _nodes(self, job):
        return [self.resource_manager.node_names[0]] * job.requested_nodes


def main():
    trace, processors, which, directory = sys.argv[1:]
    config = Path(directory) / "system.json"
    config.write_text(
        json.dumps(
            {
                "groups": {"g0": {"core": int(processors)}},
                "resources": {"g0": 1},
                "equivalence": {"processor": {"core": 1}},
                "start_time": 0,
            }
        )
    )
    dispatcher = EASYBackfilling(FirstFit()) if which == "shipped" else Textbook(0)
    started = {}
    schedule = dispatcher.schedule

    def listening(cur_time, es_dict, es):
        decided, rejected = schedule(cur_time, es_dict, es)
        for at, job_id, nodes in decided:
            if at is not None and nodes:
                started[job_id] = int(at)
        return decided, rejected

    dispatcher.schedule = listening
    began, cpu = time.perf_counter(), time.process_time()
    simulator = Simulator(
        trace, str(config), dispatcher, scheduling_output=False, statistics_output=False,
        show_statistics=False, RESULTS_FOLDER_PATH=directory, LOG_LEVEL="INFO",
    )  # fmt: skip
    simulator.start_simulation()
    wall_s = time.perf_counter() - began
    cpu_s = time.process_time() - cpu
    start_s = {str(job): at for job, at in started.items()}
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "start_s": start_s}))


if __name__ == "__main__":
    main()
