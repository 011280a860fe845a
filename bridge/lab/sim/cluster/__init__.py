# SPDX-License-Identifier: Apache-2.0
"""The simulated cluster: its controller, queue, running jobs and nodes, and checks of every plan.

Imports `workloads`, `check` and the packages below them; it has no events and no clock.
Start with `controller.py`; `plan_checks.py` says why a plan is refused.
"""
