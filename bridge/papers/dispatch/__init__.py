# SPDX-License-Identifier: Apache-2.0
"""Dispatchers by constraint programming: PCP'19, HCP'19 and PCP'20.

A window of the queue becomes an instance (`instance.py`), then a model (`window_model.py` and one
file per paper); `cp_dispatch.py` is what the three share.

Imports planning and core. Start with `window.py`.
"""
