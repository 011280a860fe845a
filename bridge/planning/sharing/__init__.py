# SPDX-License-Identifier: Apache-2.0
"""Two jobs on one node: what is known of a host, and how a CPU quota for its guest is chosen.

Imports what is below planning, and no other sub-package of it. Start with `slots.py` for who may
share, and with `learner.py` for how quotas are learnt.
"""
