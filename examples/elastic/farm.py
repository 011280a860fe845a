# SPDX-License-Identifier: Apache-2.0
"""A task farm without MPI: one program distributes tasks to a worker on each node.

    schedbridge run --worker 'python3 farm.py worker FILE' -- python3 farm.py FILE TASKS [SECONDS]

FILE is a path that all nodes see: the farm writes its address there. A worker that is asked to end
(SIGTERM) finishes its tasks first. Each worker runs them in a pool of processes.
"""

import contextlib
import json
import multiprocessing
import secrets
import signal
import socket
import sys
import time
from multiprocessing.managers import BaseManager
from pathlib import Path
from queue import Empty, Queue

from bridge.extensions.elastic.program import Program

PROCESSES = 2


class Farm(BaseManager):
    """The queues, as workers see them."""


def task(number, pause_s):
    """One task."""
    time.sleep(pause_s)
    return number, sum(i * i for i in range(number))


def deal_out(path, count, pause_s):
    """The program on the first node."""
    todo, done = Queue(), Queue()
    for number in range(count):
        todo.put((number, pause_s))
    Farm.register("todo", callable=lambda: todo)
    Farm.register("done", callable=lambda: done)
    key = secrets.token_hex(16)
    farm = Farm(("", 0), key.encode())
    server = farm.get_server()
    multiprocessing.process.threading.Thread(target=server.serve_forever, daemon=True).start()
    path.touch(mode=0o600)
    path.write_text(json.dumps([socket.gethostname(), server.address[1], key]))
    elastic, results, workers = Program(), {}, set()
    while len(results) < count:
        change = elastic.change()
        if change is not None:  # workers take tasks one by one, so there is nothing to take back
            print(f"farm: {change.kind} to {len(change.nodes)} nodes", flush=True)
            change.done()
        with contextlib.suppress(Empty):
            worker, number, result = done.get(timeout=0.1)
            results[number] = result
            workers.add(worker)
    print("farm: sum", sum(results.values()), "from", len(workers), "workers", flush=True)


def work(path):
    """A worker: takes tasks until there are none, or until it is asked to end."""
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    while not asked:
        try:
            host, port, key = json.loads(path.read_text())
            Farm.register("todo")
            Farm.register("done")
            farm = Farm((host, port), key.encode())
            farm.connect()
            break
        except (OSError, ValueError):
            time.sleep(0.1)
    # The pool's processes ignore the signal: their parent decides when to end.
    context = multiprocessing.get_context("fork")
    ignore = (signal.SIGTERM, signal.SIG_IGN)
    with context.Pool(PROCESSES, signal.signal, ignore) as pool:
        while not asked:
            try:
                tasks = [farm.todo().get(timeout=0.2)]
                with contextlib.suppress(Empty):
                    tasks += [farm.todo().get_nowait() for _ in range(PROCESSES - 1)]
                for number, result in pool.starmap(task, tasks):
                    farm.done().put((socket.gethostname(), number, result))
            except Empty:
                continue
            except (EOFError, OSError):
                return  # the farm is closed
    print(f"farm: worker on {socket.gethostname()} ends when asked", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(Path(sys.argv[2]))
    else:
        seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
        deal_out(Path(sys.argv[1]), int(sys.argv[2]), seconds)
