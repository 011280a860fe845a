# SPDX-License-Identifier: Apache-2.0
"""Sockets, certificates and the gate: authentication and limits of callers.

Imports files, errors, the names of dialects and the configuration of TLS. Start with `gate.py`.
"""
