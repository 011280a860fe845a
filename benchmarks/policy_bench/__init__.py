# SPDX-License-Identifier: Apache-2.0
"""The parts of `bench.py`: one file per group of benchmarks, imported when it is called."""
