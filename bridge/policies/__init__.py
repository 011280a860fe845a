# SPDX-License-Identifier: Apache-2.0
"""The algorithms: one folder per stage, one file per algorithm; `bridge.registry` names them."""
