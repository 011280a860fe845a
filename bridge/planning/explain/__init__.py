# SPDX-License-Identifier: Apache-2.0
"""Why a job waits, and what would let it start earlier.

Imports all other parts of planning except dispatch. Start with `what_if.py`.
"""
