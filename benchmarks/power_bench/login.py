# SPDX-License-Identifier: Apache-2.0
"""On the login node: submits jobs at their instants, and reports each job's nodes every second.

    python3 login.py <JOBS         JOBS: JSON, [[seconds after the first, options, script], ...]

Lines of JSON: {"job": ID, "called": S, "number": N} for each submission, {"at": S, "held": [[ID,
NODES], ...]} each second, {"over": S} when all have ended. Times are seconds since 1970. An ending
job holds the nodes on which Slurm still waits for its processes.
"""

import json
import subprocess
import sys
import threading
import time

PERIOD_S = 1.0
SHOWN = ["squeue", "-h", "-a", "-t", "PD,CF,R,CG,S", "-o", "%i %t %N"]


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def submit(jobs, begin_s, failed):
    for number, (at_s, options, script) in enumerate(jobs):
        time.sleep(max(begin_s + at_s - time.time(), 0))
        called_s = time.time()
        done = subprocess.run(
            ["sbatch", "--parsable", "-o", "power/%j.out", *options],
            input=script, text=True, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            failed.append(f"sbatch {' '.join(options)}: {done.stderr.strip()}")
            return
        say(job=done.stdout.strip().split(";")[0], called=called_s, number=number)


def main():
    jobs = json.load(sys.stdin)
    begin_s, failed = time.time() + 1, []
    submitter = threading.Thread(target=submit, args=(jobs, begin_s, failed))
    submitter.start()
    due_s = begin_s
    while True:
        due_s = max(due_s + PERIOD_S, time.time())
        done = subprocess.run(SHOWN, capture_output=True, text=True, check=False)
        at_s = time.time()
        rows = [line.split() for line in done.stdout.splitlines()]
        if failed:
            sys.exit(failed[0])
        if done.returncode == 0:
            held = [(row[0], row[2]) for row in rows if row[1] != "PD" and len(row) > 2]
            say(at=at_s, held=held)
            if not rows and not submitter.is_alive():
                say(over=at_s)
                return
        time.sleep(max(due_s - time.time(), 0))


main()
