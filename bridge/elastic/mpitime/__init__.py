# SPDX-License-Identifier: Apache-2.0
"""A library for LD_PRELOAD that measures the time in MPI, as source: the Makefile compiles it.

mpitime.c says how it works. FOLDER is where its files are, LIBRARY where it is installed.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
LIBRARY: Final = Path("/usr/lib/schedbridge/libschedbridge_mpitime.so")
