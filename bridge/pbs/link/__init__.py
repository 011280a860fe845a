# SPDX-License-Identifier: Apache-2.0
"""The process that is the scheduler of a PBS server, and a client of the service's wire.

`mirror.py` keeps the server's tables; `starts.py` follows starts under way; `stream.py` speaks the
wire; `chores.py` makes requests that may block; `loop.py` is one turn after the other;
`supervisor.py` starts it, watches it, and starts pbs_sched in its place. Imports all other parts of
the package. Start with `loop.py`.
"""
