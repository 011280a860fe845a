# SPDX-License-Identifier: Apache-2.0
"""Reports of schedules: tables, plots, Gantt charts, an HTML page; files for programs.

All functions take `Run`s. Imports measures and the model. Start with
`run.py`.
"""
