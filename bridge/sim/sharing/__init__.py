# SPDX-License-Identifier: Apache-2.0
"""Two simulated jobs on the same nodes: how fast each of them runs, and what it uses.

`interference.py` is the model and its file, `rates.py` what it says of two stages at one instant,
and `progress.py` the work of jobs over time.

Imports the model and errors, and nothing else of the simulator. Start with `rates.py`.
"""
