# SPDX-License-Identifier: Apache-2.0
"""The parts of the service that are specific to Slurm: dialect, requests, topology.conf.

Imports planning's grammar of chunks and the packages below it. Start with `dialect.py`, the port
for everything below `rpc/`; the plugins in C are in `bridge/shim`.
"""
