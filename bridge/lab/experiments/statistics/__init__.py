# SPDX-License-Identifier: Apache-2.0
"""Statistics of experiments: paired differences from a baseline, with intervals and words.

Everything but `reading.py` takes columns of jobs, no files. Imports `measures`, the results of
cells, and numpy.
Start with `compare.py`.
"""
