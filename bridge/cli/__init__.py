# SPDX-License-Identifier: Apache-2.0
"""The command `schedbridge`: one file per sub-command.

Those that run beside Slurm are here (`serve`, `agent`, `run`), the others in `operators/`,
`simulation/`, `experiments/` and `benchmarks/`. May import everything. Start with `main.py`.
"""
