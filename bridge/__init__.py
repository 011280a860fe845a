# SPDX-License-Identifier: Apache-2.0
"""schedbridge: a scheduling service beside Slurm. docs/ARCHITECTURE.md describes the packages."""
