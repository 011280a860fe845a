# SPDX-License-Identifier: Apache-2.0
"""What planners that minimise an objective share: costs of waits, their account, CP-SAT.

Imports scheduler and the packages below it. Start with `objective.py`.
"""
