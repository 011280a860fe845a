# SPDX-License-Identifier: Apache-2.0
"""Dask on a job whose width changes: the scheduler here, a worker on each node.

    schedbridge run --worker 'sh dask_worker.sh FILE' -- python3 dask_farm.py FILE TASKS [SECONDS]

FILE is a path that all nodes see. Before a node is removed, its worker is retired: its data move to
the others.
"""

import socket
import sys
import time
from pathlib import Path

from distributed import Client, LocalCluster

from bridge.extensions.elastic.program import Program


def task(number, pause_s):
    """One task."""
    time.sleep(pause_s)
    return sum(i * i for i in range(number))


def main(path, count, pause_s):
    """Distributes the tasks, and follows changes of the job's nodes."""
    elastic = Program()
    with (
        LocalCluster(
            n_workers=0, host=socket.gethostname(), protocol="tcp", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.write_scheduler_file(str(path))
        tasks = client.map(task, range(count), [pause_s] * count)
        seen = set()
        while not all(future.done() for future in tasks):
            workers = client.scheduler_info(n_workers=-1)["workers"]
            seen |= {worker["name"] for worker in workers.values()}
            change = elastic.change(0.1)
            if change is None:
                continue
            going = [a for a, worker in workers.items() if worker["name"] in change.remove]
            if going:
                client.retire_workers(going, close_workers=False)
            change.done()
            print(f"dask: {change.kind} to {len(change.nodes)} nodes", flush=True)
        print("dask: sum", sum(client.gather(tasks)), "from", len(seen), "workers", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
