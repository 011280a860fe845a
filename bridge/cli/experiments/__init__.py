# SPDX-License-Identifier: Apache-2.0
"""Commands for experiments: many simulations, kept and compared; repeating a result.

Import `bridge.lab.experiments` and the parts of `simulate` in `bridge/cli/simulation`. Start with
`experiment.py`; `running.py` computes one cell.
"""
