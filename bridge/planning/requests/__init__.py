# SPDX-License-Identifier: Apache-2.0
"""Requests of jobs: chunks, feature expressions, amounts that rules count.

Imports the model only. Start with `chunks.py`, the syntax of `select` and `place`.
"""
