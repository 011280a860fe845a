# SPDX-License-Identifier: Apache-2.0
"""Electric power: the assumed draw of nodes and jobs.

Imports planning of malleable jobs and the packages below it. Start with `estimates.py`.
"""
