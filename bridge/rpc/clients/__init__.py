# SPDX-License-Identifier: Apache-2.0
"""The service from outside.

`remote_decider.py` is a controller that asks it to decide, `operator_client.py` an operator that
asks it why.
"""
