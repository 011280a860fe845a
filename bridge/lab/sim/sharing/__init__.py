# SPDX-License-Identifier: Apache-2.0
"""Two simulated jobs on the same nodes: the speed and the use of each.

`interference.py` has the model and its file, `rates.py` the rates of two stages at one instant,
`progress.py` the work of jobs over time, `setting.py` the jobs of a workload that may share nodes,
and `running.py` their ends, readings and log.

Imports the model and errors, and nothing else of the simulator. Start with `rates.py`.
"""
