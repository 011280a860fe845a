# SPDX-License-Identifier: Apache-2.0
"""Readers of the accounting of resource managers: their jobs as site workloads, and pseudonyms.

Imports the simulator's records, the objects of PBS and the model; the command line imports it.
Start with `reading.py` (which reader a file gets) and `site_commands.py` (what a site's commands
and slurmdbd say).
"""
