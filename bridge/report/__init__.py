# SPDX-License-Identifier: Apache-2.0
"""Schedules shown to people: tables, plots, Gantt charts, one HTML page; and to programs, as files.

Everything here is given `Run`s and decides nothing.
"""
