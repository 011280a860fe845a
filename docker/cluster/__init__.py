# SPDX-License-Identifier: Apache-2.0
"""A dockerized Slurm cluster, scheduled by the bridge or by Slurm itself (`scripts/cluster`).

    engine      the docker command, and the one kind of error
    images      what the containers are made of
    site        what a cluster looks like: nodes, partitions, and the files that say so
    life        a cluster from up to down
    daemons     what happens to single daemons meanwhile
    commands    the command line

Standard library only: the cluster must be had before anything is installed.
"""
