# SPDX-License-Identifier: Apache-2.0
"""The parts of `coscheduling_cluster.py`, and the plot of `coscheduling.py`."""
