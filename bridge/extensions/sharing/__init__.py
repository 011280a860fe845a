# SPDX-License-Identifier: Apache-2.0
"""Jobs that share nodes: which guests go with a plan.

Not an extension yet: the cycle still imports it. Imports planning, the model and the ports. Start
with `shared_plan.py`.
"""
