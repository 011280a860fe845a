# SPDX-License-Identifier: Apache-2.0
"""The library for MPI programs in C, C++ and Fortran, as source: users compile it with their MPI.

bridge_elastic.h says what it does; the Makefile compiles it. FOLDER is where they are.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
