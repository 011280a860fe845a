# SPDX-License-Identifier: Apache-2.0
"""schedbridge: a scheduling brain beside Slurm."""
