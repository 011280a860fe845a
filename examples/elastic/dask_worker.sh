#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The worker of dask_farm.py on one node. Usage: dask_worker.sh FILE
until [ -s "$1" ]; do sleep 0.1; done
exec dask worker --scheduler-file "$1" --name "$SLURMD_NODENAME" --nthreads 2 --no-dashboard
