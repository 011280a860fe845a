# SPDX-License-Identifier: Apache-2.0
"""Two jobs on one node: what is known about a host, and how a CPU quota for its guest is chosen.

Imports the packages below planning, and no other sub-package of it. Start with `slots.py` (who may
share) and `learner.py` (how quotas are learnt).
"""
