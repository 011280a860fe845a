# SPDX-License-Identifier: Apache-2.0
"""Generated jobs as site workloads: Lublin and Feitelson's model, and one fitted to given jobs.

Imports the records of site workloads, traces and the system beside it.
Start with `lublin.py` or `fitted.py`; `mixes.py` adds memory and GPUs.
"""
