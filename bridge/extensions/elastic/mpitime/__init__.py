# SPDX-License-Identifier: Apache-2.0
"""A library for LD_PRELOAD that measures the time in MPI, as source.

FOLDER is where its files are, LIBRARY where it is installed; the `Makefile` compiles it. It needs
no MPI to compile, and Python imports nothing. Start with `mpitime.c`, which says how it works.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
LIBRARY: Final = Path("/usr/lib/schedbridge/libschedbridge_mpitime.so")
