# SPDX-License-Identifier: Apache-2.0
"""What jobs ask for: chunks, constraint expressions over features, amounts that rules count.

Imports the model only. Start with `chunks.py`, the language of `select` and `place`.
"""
