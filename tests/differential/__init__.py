# SPDX-License-Identifier: Apache-2.0
"""The same jobs on a bridged and on a stock Slurm of the same nodes: whatever starts there, starts.

    site        the two clusters: one slurm.conf but for SchedulerType
    accounts    accounts, users and QOS of both
    agent       runs inside a cluster: clears it, prepares, submits, watches
    stand       a cluster from up to down, and the line to its agent
    cases       the cases, read from cases/*.yaml
    compare     two outcomes, one verdict
    table       docs/results/differential.md

`scripts/test differential --help`.
"""
