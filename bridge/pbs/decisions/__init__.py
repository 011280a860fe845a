# SPDX-License-Identifier: Apache-2.0
"""From decisions of the service to requests to a server. Start with `ledger.py`, the last check."""
