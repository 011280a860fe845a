# SPDX-License-Identifier: Apache-2.0
"""The laboratory: what nobody needs beside a resource manager.

`sim/` runs a trace against a simulated controller, `experiments/` runs many simulations and
compares them, `report/` draws schedules, and `accounting/` imports what a site has recorded.

Imports everything but the service and the commands; only commands import it. Start with
`sim/runs/engine.py`.
"""
