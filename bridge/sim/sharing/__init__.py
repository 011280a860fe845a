# SPDX-License-Identifier: Apache-2.0
"""Two simulated jobs on the same nodes: how fast each of them runs, and what it uses.

`interference.py` is the model and its file, `rates.py` what it says of two stages at one instant,
`progress.py` the work of jobs over time, `setting.py` which jobs of a workload may share nodes, and
`running.py` their ends, readings and log.

Imports the model and errors, and nothing else of the simulator. Start with `rates.py`.
"""
