# SPDX-License-Identifier: Apache-2.0
"""Simulated system power, its corridor, and a policy's view of both.

Imports `cluster` and `workloads`. Start with `power.py`, a step function over time;
`paper.py` is the workload of a published evaluation.
"""
