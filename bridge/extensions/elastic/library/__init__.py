# SPDX-License-Identifier: Apache-2.0
"""The library for MPI programs in C, C++ and Fortran, as source: users compile it with their MPI.

FOLDER is where the files are; the `Makefile` compiles them. They include MPI and one another, and
Python imports nothing. Start with `bridge_elastic.h`, the interface.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
