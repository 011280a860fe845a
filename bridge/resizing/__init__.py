# SPDX-License-Identifier: Apache-2.0
"""Carries decided resizes of running jobs out, step by step, with the controller and the launchers.

Imports the model only, so that it runs in a simulation as in the service. Start with `states.py`,
then `runtime.py`; docs/design/0009-elastic-jobs.md is the design.
"""
