# SPDX-License-Identifier: Apache-2.0
"""Commands that plan without a controller: simulations, recorded cycles, the demo.

Import the simulator, the decider, the report and `cli/operators/asking.py`; `policies.py` and
`solvers.py` are options that they share. Start with `simulate.py`.
"""
