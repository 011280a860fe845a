# SPDX-License-Identifier: Apache-2.0
"""Stage `order`: which job is considered first.

One file per algorithm: a frozen dataclass with the method `order`.
Imports the model only. Start with `shortest.py`.
"""
