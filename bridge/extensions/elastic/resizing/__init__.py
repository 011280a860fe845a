# SPDX-License-Identifier: Apache-2.0
"""Carries out decided resizes of running jobs with the controller and the launchers.

Imports the model and the check of resizes, so that it runs in a simulation as in the service; only
`adjustments.py`, which writes the messages to the controller, imports rpc. What is in the memory
file is in `resize_memory.py`. Start with `states.py` and `transitions.py`;
docs/design/0009-elastic-jobs.md is the design.
"""
