# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: what runs inside of them, what resizes them, and the queue planned again.

`launcher/` is `schedbridge run`; `library/` is for MPI programs in C, C++ and Fortran, `mpi.py` for
those in Python (over mpi4py), `program.py` for programs without MPI; `link.py` connects Python
programs with the launcher. `lines.py` has the messages between launcher and agent; `mpitime/`
measures the time in MPI. All of these import only the standard library and `bridge.errors`
(`mpi.py` also mpi4py), because they run where users' programs do.

Not an extension yet: the cycle still imports `replan.py`, which imports check, planning and the
ports; wire and service import `resizing/`, which carries decided resizes out, and
`operators/`, their questions and orders.
docs/design/0009-elastic-jobs.md is the design. Start with `launcher/machine.py`.
"""
