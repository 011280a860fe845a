# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: the queue planned again around other widths.

Not an extension yet: the cycle still imports it. Imports check, planning and the ports. Start with
`replan.py`.
"""
