# SPDX-License-Identifier: Apache-2.0
"""The reported state of one controller: columns that deltas change in place.

Imports the model and `planning`. Start with `session.py`, which judges reports; `cluster.py` holds
the tables.
"""
