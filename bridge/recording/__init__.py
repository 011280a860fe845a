# SPDX-License-Identifier: Apache-2.0
"""Cycles of a live service, recorded so that they can be run again.

Imports the decider and the model. Start with `recordings.py`, the format.
"""
