# SPDX-License-Identifier: Apache-2.0
"""Reports of schedules: tables, plots, Gantt charts, an HTML page for people; files for programs.

All functions take `Run`s; nothing is decided here.
"""
