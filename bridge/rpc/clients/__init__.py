# SPDX-License-Identifier: Apache-2.0
"""Clients of the service.

`remote_decider.py` is a controller that requests decisions, `operator_client.py` an operator that
requests explanations. Imports encode and the messages. Start with `remote_decider.py`.
"""
