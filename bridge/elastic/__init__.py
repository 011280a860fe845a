# SPDX-License-Identifier: Apache-2.0
"""The application's side of malleable jobs: code that runs inside a job, on its nodes.

`launcher/` is `schedbridge run`; `library/` is for MPI programs in C, C++ and Fortran, `mpi.py` for
those in Python (over mpi4py), `program.py` for programs without MPI; `link.py` connects Python
programs with the launcher. `lines.py` has the messages between launcher and agent.

Imports only the standard library and `bridge.errors` (`mpi.py` also mpi4py), because it runs where
users' programs do. docs/design/0009-elastic-jobs.md is the design. Start with
`launcher/machine.py`.
"""
