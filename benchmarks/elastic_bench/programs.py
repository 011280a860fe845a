# SPDX-License-Identifier: Apache-2.0
"""The example programs, compiled on the cluster for each of its MPIs."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from cluster_bench.stand import ROOT, Stand

COMPILERS = {"wheel": "/opt/mpich/bin/mpicc", "ompi": "mpicc.openmpi"}
"""The MPICH of the Python package index, which joins; Debian's Open MPI, which is relaunched."""
WIRES = {"wheel": "pmi2", "ompi": "pmix"}
SETTINGS = {
    "FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "OMPI_MCA_smsc": "^cma", "OMPI_MCA_btl_tcp_if_include": "eth0",
    "OMPI_MCA_mpi_yield_when_idle": "1", "TMPDIR": "/tmp",
}  # fmt: skip
"""Settings that these MPIs need in containers."""
_FOLDERS = {"library": "bridge/extensions/elastic/library", "examples": "examples/elastic"}


def compile_examples(
    stand: Stand, compilers: Sequence[str] = tuple(COMPILERS), pace: Path | None = None
) -> None:
    """Puts library and examples into ~/elastic, which all nodes mount.

    Args:
        stand: the cluster.
        compilers: names in COMPILERS.
        pace: a source that replaces `usleep`.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, folder in _FOLDERS.items():
            tar.add(ROOT / folder, name)
        if pace is not None:
            tar.add(pace, "pace.c")
    unpack = "rm -rf ~/elastic && mkdir ~/elastic && tar -x -C ~/elastic"
    stand.shell("sh", "-c", unpack, stdin=packed.getvalue())
    more = "" if pace is None else "pace.c -Wl,--wrap=usleep"
    for name in compilers:
        compiler = COMPILERS[name]
        path = " -Wl,-rpath,/opt/mpich/lib" if name == "wheel" else ""
        stand.shell("sh", "-ec", f"""cd ~/elastic
            make -s -f library/Makefile MPICC={compiler} OUT=$PWD/{name}
            for program in heat pi; do
                {compiler} -O2 -Ilibrary -o {name}/$program examples/$program.c {more} \
                    {name}/libbridge_elastic.a{path} -lm
            done""")  # fmt: skip


def exports() -> str:
    """Lines of a batch script."""
    return "".join(f"export {name}={value}\n" for name, value in SETTINGS.items())
