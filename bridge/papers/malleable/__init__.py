# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs as published: by performance, FPSMA, and within a power corridor.

The base of all is `Reshaper` of planning/malleable.

Imports planning/malleable and ports. Start with `performance.py`.
"""
