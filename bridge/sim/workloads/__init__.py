# SPDX-License-Identifier: Apache-2.0
"""What is simulated: the jobs of a trace or of a seed, how they speed up, and the machine.

Imports the model, planning and the dialect; no other part of the simulator.
Start with `workload.py` (a trace as jobs) and `system.py` (the machine).
"""
