# SPDX-License-Identifier: Apache-2.0
"""schedbridge: a scheduling service beside Slurm.

The packages and what each may import are in docs/ARCHITECTURE.md; `import-linter` enforces it. The
modules here are ports, registry and the steps of a cycle. Start with `cycle.py`, then `ports.py`.
"""
