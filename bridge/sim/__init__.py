# SPDX-License-Identifier: Apache-2.0
"""The simulator: a trace, a simulated controller and a decider, driven by events.

`swf.py` reads and writes the Standard Workload Format, `workload.py` makes jobs of a trace, and
`streams.py` synthetic ones from a seed; `system.py` is the machine. `controller.py` is the
authority on queue and nodes and checks every plan (`plan_checks.py`); its tables are
`running_jobs.py`, `occupancy.py` and `job_rows.py`. `faults.py` injects faults, from a seed.
`rerun.py` and `judging.py` plan recorded cycles again and evaluate the plans; `anonymous.py`
removes people's names from recordings. `replay.py` has the same results for interchangeable nodes
from the C++ kernel in one call.

Imports the decider, recordings and what is below them; nothing that runs beside Slurm may import
it. Start with `engine.py`, the events second by second.
"""
