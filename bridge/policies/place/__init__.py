# SPDX-License-Identifier: Apache-2.0
"""Stage `place`: which nodes are preferred. Start with `best_fit.py`."""
