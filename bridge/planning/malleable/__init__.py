# SPDX-License-Identifier: Apache-2.0
"""Running jobs that can change their width: allowed widths, and nodes to add or release.

Imports scheduler and the packages below it. Start with `expand_shrink.py`.
"""
