# SPDX-License-Identifier: Apache-2.0
"""Which nodes a job may use, and when: its alternatives, and leaf switches.

Imports requests and the model. Start with `alternatives.py`.
"""
