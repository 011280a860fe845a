# SPDX-License-Identifier: Apache-2.0
"""Planted faults: a test of the tests. `mutants.yaml` names them, `__main__.py` tries them."""
