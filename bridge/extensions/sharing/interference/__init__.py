# SPDX-License-Identifier: Apache-2.0
"""How much guests slow down their hosts: measured, estimated, and learnt for pairs of applications.

Imports the files of `sharing`, but no policy of pairs. Start with `monitor.py`, which puts the
parts together; `estimates.py` says what a slowdown is.
"""
