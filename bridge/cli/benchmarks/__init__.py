# SPDX-License-Identifier: Apache-2.0
"""The command `lab bench`: one file per group of benchmarks, imported when it is called.

Imports the simulator, the report and the commands of `cli/simulation`. Start with `commands.py`;
`workloads.py` has the artificial queues.
"""
