# SPDX-License-Identifier: Apache-2.0
"""Jobs that share nodes as published: ASA_X, and the static halves that it is compared with.

Imports extensions/sharing, the model and ports. Start with `static_half.py`.
"""
