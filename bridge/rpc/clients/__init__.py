# SPDX-License-Identifier: Apache-2.0
"""The service from outside.

`remote_decider.py` is a controller that asks it for decisions, `operator_client.py` an operator
that asks for explanations. Imports encode and the messages. Start with `remote_decider.py`.
"""
