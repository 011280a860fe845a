# SPDX-License-Identifier: Apache-2.0
"""The process that is the scheduler of a PBS server, and a client of the service's wire.

`loop.py` is one turn after the other. It reads (`reading.py`, with the tables of `mirror.py` and
the starts under way of `starts.py`), calls the service (`call_times.py`, `stream.py`), carries out
its decisions (`execution.py`, `announcer.py`) and answers the server (`requests.py`).
`supervisor.py` starts the process, watches it, and starts pbs_sched in its place. Imports all other
parts of the package. Start with `loop.py`.
"""
