# SPDX-License-Identifier: Apache-2.0
"""Power of this node, and resource use of its jobs.

Sensors are behind one port (`sensor.py`), a file each; `choice.py` uses the first that has a
value. `cgroups.py` and `process_use.py` measure the use of jobs. Imports the messages of the wire
and `agent/processes.py`. Start with `meter.py`, which makes readings, then `batches.py`.
"""
