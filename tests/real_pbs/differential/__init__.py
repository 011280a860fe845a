# SPDX-License-Identifier: Apache-2.0
"""The same jobs under pbs_sched and under the service, on the same real server.

`cases.py` is the table of kinds of jobs; `run.py` runs it under one scheduler and `compare.py`
compares two results.
"""
