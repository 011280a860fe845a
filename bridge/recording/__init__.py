# SPDX-License-Identifier: Apache-2.0
"""Recorded cycles of a live service, for running them again.

Imports the decider and the model. Start with `recordings.py`, the format.
"""
