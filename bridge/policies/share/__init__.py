# SPDX-License-Identifier: Apache-2.0
"""Stage `share`: which jobs share nodes, and under which CPU quotas.

Others than `none.py` are of the extension, in `bridge/extensions/sharing`. Imports the model and
ports. Start with `none.py`.
"""
