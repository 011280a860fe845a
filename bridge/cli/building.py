# SPDX-License-Identifier: Apache-2.0
"""`schedbridge elastic build-library` and `build-mpi-time`: compile the libraries."""

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.operators.asking import console
from bridge.errors import ConfigError
from bridge.extensions.elastic import library, mpitime

_BESIDE = ("bridge_elastic.h", "bridge_elastic.f90")
"""Files that programs need in addition to the archive."""


def build_library(
    out: Annotated[
        Path, typer.Option(help="Folder for the library, its header and its Fortran module.")
    ],
    mpicc: Annotated[
        str, typer.Option(help="The compiler of the MPI that the programs are linked with.")
    ] = "mpicc",
) -> None:
    """Compile the library for MPI programs, with the MPI that they use.

    Needs make and a C compiler. Use one folder for each MPI.
    """
    _make(library.FOLDER, out, "--mpicc", f"MPICC={mpicc}")
    for source in library.FOLDER.glob("*.c"):
        (out / f"{source.stem}.o").unlink(missing_ok=True)
    for name in _BESIDE:
        shutil.copy(library.FOLDER / name, out)
    where = out.resolve()
    console().print(
        f"compiled: {mpicc} -I{where} program.c {where}/libbridge_elastic.a", soft_wrap=True
    )


def build_mpi_time(
    out: Annotated[
        Path,
        typer.Option(help="Folder, on every node; 'schedbridge run' searches the default one."),
    ] = mpitime.LIBRARY.parent,
    cc: Annotated[str, typer.Option(help="C compiler; MPI is not needed.")] = "cc",
) -> None:
    """Compile the library that measures the time in MPI.

    Needs make and a C compiler. If the library is not in the default folder, set
    SCHEDBRIDGE_MPI_TIME for 'schedbridge run'.
    """
    _make(mpitime.FOLDER, out, "--cc", f"CC={cc}")
    console().print(f"compiled: {out.resolve() / mpitime.LIBRARY.name}", soft_wrap=True)


def _make(folder: Path, out: Path, option: str, *settings: str) -> None:
    if any(sign.isspace() for sign in f"{folder}{out}"):
        raise ConfigError("--out", "make cannot work in directories with spaces in their names")
    make = shutil.which("make")
    if make is None:
        raise ConfigError("make", "is missing")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError("--out", f"{out}: {error.strerror or error}") from None
    done = subprocess.run(
        [make, "-s", "-f", str(folder / "Makefile"), *settings, f"OUT={out.resolve()}"],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["make failed"]
        raise ConfigError(option, "\n".join(lines[-10:]))
