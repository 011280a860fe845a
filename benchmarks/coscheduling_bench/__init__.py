# SPDX-License-Identifier: Apache-2.0
"""The parts of `coscheduling_cluster.py`: workload, nodes, runs, figures, tables."""
