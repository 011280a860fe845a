# SPDX-License-Identifier: Apache-2.0
"""A site's own jobs with all that its accounting knows of them: records, their file, their jobs.

Imports the model, planning's constraint parser, and the traces and workloads beside it.
Start with `job_record.py` (the fields), then `lowering.py` (the jobs to simulate).
"""
