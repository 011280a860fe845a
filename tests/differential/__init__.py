# SPDX-License-Identifier: Apache-2.0
"""Compares a bridged with a stock Slurm: a job that starts in stock must start with the bridge.

    site        the two clusters: the same slurm.conf except SchedulerType
    variants    other configurations of both
    accounts    accounts, users and QOS of both
    agent       runs inside a cluster: clears it, prepares, submits, watches
    stand       starts and stops a cluster, and talks to its agent
    cases       reads the cases from cases/*.yaml
    compare     two outcomes, one verdict
    table       docs/results/differential.md

`scripts/test differential --help`.
"""
