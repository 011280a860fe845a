# SPDX-License-Identifier: Apache-2.0
"""What one controller has reported: columns that deltas change in place.

Imports the model and `planning`. Start with `session.py`, which judges reports; `cluster.py` holds
the tables.
"""
