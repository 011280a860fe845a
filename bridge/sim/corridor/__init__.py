# SPDX-License-Identifier: Apache-2.0
"""The power that a simulated system draws, its corridor, and what a policy sees of both.

Imports `cluster` and `workloads`. Start with `power.py`, a step function over time;
`paper.py` is the workload of a published evaluation.
"""
