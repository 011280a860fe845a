# SPDX-License-Identifier: Apache-2.0
"""Stage `share`: which jobs share nodes, and under which CPU quotas.

So far there is one policy, which lets none share.
Imports the model and ports. Start with `none.py`.
"""
