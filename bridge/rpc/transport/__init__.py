# SPDX-License-Identifier: Apache-2.0
"""Sockets, certificates and the gate: who may call, and how much.

Imports errors and units only. Start with `gate.py`.
"""
