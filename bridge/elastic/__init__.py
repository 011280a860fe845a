# SPDX-License-Identifier: Apache-2.0
"""The application's side of malleable jobs: what runs inside a job, on its own nodes.

    lines.py     the messages between launcher and agent; the agent reads the same from its side
    launcher/    `schedbridge run`: owns the job's steps; start with machine.py
    library/     the library for C, C++ and Fortran: bridge_elastic.h
    mpi.py       its Python face, over mpi4py
    program.py   programs without MPI
    link.py      the Python faces' connection to the launcher

Imports the standard library and `bridge.errors` alone (mpi.py also mpi4py): it runs where users'
programs do. Start with docs/design/0009-elastic-jobs.md.
"""
