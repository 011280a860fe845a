# SPDX-License-Identifier: Apache-2.0
"""The simulator: a trace, a simulated controller and a decider, driven by events.

`workloads/` makes jobs and machines, `sharing/` models the speed of jobs on shared nodes,
`cluster/` is the authority on queue and nodes, `corridor/` computes system power, `runs/` has the
events, and `recorded/` plans recorded cycles again. `data/` holds a trace, two machines and
recorded instances.

Imports the decider, recordings and the packages below them; nothing that runs beside Slurm may
import it. Start with `runs/engine.py`, the events second by second.
"""
