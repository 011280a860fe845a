# SPDX-License-Identifier: Apache-2.0
"""What the service knows of Slurm: the dialect, requests as Slurm holds them, topology.conf.

Imports planning's grammar of chunks and what is below it. Start with `dialect.py`, the port for
everything below `rpc/`; the plugins in C are in `bridge/shim`.
"""
