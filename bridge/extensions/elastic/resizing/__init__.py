# SPDX-License-Identifier: Apache-2.0
"""Carries out decided resizes of running jobs with the controller and the launchers.

Imports the model and the check of resizes, so that it runs in a simulation as in the service. Start
with `states.py` and `transitions.py`; docs/design/0009-elastic-jobs.md is the design.
"""
