# SPDX-License-Identifier: Apache-2.0
"""Slurm's own files and words, read into the model's."""
