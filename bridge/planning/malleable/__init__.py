# SPDX-License-Identifier: Apache-2.0
"""Running jobs that can change their width: which widths they allow, and which nodes change hands.

Imports eligibility. Start with `expand_shrink.py`.
"""
