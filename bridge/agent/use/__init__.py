# SPDX-License-Identifier: Apache-2.0
"""Resource use of this node and its jobs.

`cgroups.py` and `process_use.py` measure the use of jobs. Imports the messages of the wire and
`agent/processes.py`. Start with `meter.py`, which makes readings, then `batches.py`.
"""
