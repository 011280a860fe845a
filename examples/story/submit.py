# SPDX-License-Identifier: Apache-2.0
"""Submits jobs at their times, as their users: root runs it where sbatch is.

Standard input: a JSON list of jobs with `after_s`, `user`, `cpus`, `limit_min`, `run_s`, `name`.
"""

import json
import subprocess
import sys
import time

began_s = time.monotonic()
for job in json.load(sys.stdin):
    time.sleep(max(0.0, job["after_s"] - (time.monotonic() - began_s)))
    command = ["sbatch", "--quiet", f"--uid={job['user']}", f"--job-name={job['name']}"]
    command += [f"--ntasks={job['cpus']}", f"--time={job['limit_min']}", "--chdir=/tmp"]
    command += ["--output=/dev/null", f"--wrap=sleep {job['run_s']}"]
    subprocess.run(command, check=True)
