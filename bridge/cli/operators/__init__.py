# SPDX-License-Identifier: Apache-2.0
"""Commands that ask a running service: what it plans and why, and changes by administrators.

Import `rpc/clients` through `asking.py`, and nothing of the simulator, except for `topology.py`,
which can also draw a described system. Start with `asking.py`, then `status.py`.
"""
