# SPDX-License-Identifier: Apache-2.0
"""What this node draws, and which job uses how much of it.

Sensors are behind one port (`sensor.py`), a file each; `choice.py` takes the first that has a
value. `cgroups.py` and `process_use.py` say what jobs use. Imports the messages of the wire and
`agent/processes.py`. Start with `meter.py`, which makes readings, then `batches.py`.
"""
