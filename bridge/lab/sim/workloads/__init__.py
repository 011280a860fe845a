# SPDX-License-Identifier: Apache-2.0
"""The simulated workload: jobs of a trace or from a seed, their speed-ups, and the machine.

Imports the model, planning and the dialect; no other part of the simulator.
Start with `workload.py` (a trace as jobs) and `system.py` (the machine).
"""
