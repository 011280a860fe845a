# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: one self-contained HTML page, and one table over all runs.

Imports the statistics of experiments and the look of the other reports (`report`). Start with
`page.py` (the page) and `table.py` (CSV and Parquet).
"""
