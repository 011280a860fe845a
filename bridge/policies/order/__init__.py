# SPDX-License-Identifier: Apache-2.0
"""Stage `order`: which job is considered first. Start with `shortest.py`."""
