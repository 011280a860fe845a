# SPDX-License-Identifier: Apache-2.0
"""Makes the images of `docker/Dockerfile`: what they need from outside, and the builds.

Rules
    1. Wheels are fetched here, on the host, with whatever index, proxy and certificates pip is
       configured for; the builds themselves need Debian's mirror only, and only once.
    2. The build context is exactly what the Dockerfile copies, with one time stamp for all files:
       a fresh clone and a worn checkout find the same layers and the same compiled kernels.
"""

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from cluster.engine import ROOT, Trouble, call, say

_PREFIX = os.environ.get("SCHEDBRIDGE_IMAGES", "schedbridge")
"""With a prefix of its own a second checkout can be tested on the same machine."""
PLAIN, BUILD, CLUSTER = f"{_PREFIX}/plain", f"{_PREFIX}/build", f"{_PREFIX}/cluster"
SUITE, MPI = f"{_PREFIX}/suite", f"{_PREFIX}/mpi"
TARGETS = {"plain": PLAIN, "build": BUILD, "cluster": CLUSTER, "suite": SUITE, "mpi": MPI}
WHOLE = ("cluster", "suite", "mpi")
"""Those that hold the service and the plugins."""
CACHE = ROOT / "docker" / "cache"
LABEL = "schedbridge.image=yes"
PYTHON = "3.13"
"""Python of the base image's Debian."""
ALWAYS = ("docker/Dockerfile", "docker/role")
SOURCES = (
    "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSES", "proto", "bridge",
    "schedbridge_contracts",
)  # fmt: skip
MPI_WHEELS = ("distributed>=2025.1", "mpi4py>=4.1", "mpich>=5.0,<6", "numpy>=2.0.2")
"""What the image `mpi` holds besides Debian's packages; its Python programs use numpy."""
LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache", "build"}
STAMP_S = 1_577_836_800
"""Time of every file in the context (2020-01-01): older ones cannot be put into a wheel."""


def exists(image: str) -> bool:
    """Is this image there?"""
    return call("image", "inspect", image, check=False).returncode == 0


def remove() -> None:
    """Removes the images, and what the builds left between their stages.

    Raises:
        Trouble: a cluster still uses one.
    """
    found = [image for image in TARGETS.values() if exists(image)]
    if found:
        call("image", "rm", *found)
    call("image", "prune", "--force", "--filter", f"label={LABEL}")


def build(*targets: str) -> None:
    """Makes images by their names in TARGETS, with the base image if it is missing.

    Raises:
        Trouble: something is missing, or a build failed; the detail is the end of its log.
    """
    base = subprocess.run(
        [str(ROOT / "scripts" / "base-image")], stderr=subprocess.PIPE, text=True, check=False
    )
    if base.returncode != 0:
        raise Trouble(base.stderr.strip().splitlines()[-1] if base.stderr else "no base image")
    whole = any(target in WHOLE for target in targets)
    if whole and not (ROOT / "bridge" / "shim" / "Makefile").exists():
        raise Trouble("bridge/shim/Makefile is missing: this checkout is not complete")
    wheels = _wheels() if whole else None
    mpi_wheels = _fetched("mpi-wheels", mpi=sorted(MPI_WHEELS)) if "mpi" in targets else None
    for number, target in enumerate(targets, 1):
        say(f"image {number} of {len(targets)}: {TARGETS[target]}")
        context = _context(wheels if target in WHOLE else None, mpi_wheels)
        command = [
            "docker", "build", "--network", "host", "--file", "docker/Dockerfile",
            "--target", target, "--tag", TARGETS[target], "-",
        ]  # fmt: skip
        CACHE.mkdir(exist_ok=True)
        log = CACHE / f"build-{target}.log"
        if _followed(command, context, log):
            tail = log.read_text(errors="replace").splitlines()[-30:]
            raise Trouble(f"image {TARGETS[target]} was not built: see {log}", "\n".join(tail))


def _followed(command: list[str], context: bytes, log: Path) -> int:
    """Runs a build, its output into a file; tells each step that takes time. Returns its code."""
    step, began = "", time.monotonic()
    with (
        tempfile.TemporaryFile() as given,
        log.open("w") as written,
    ):
        given.write(context)
        given.seek(0)
        with subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        ) as build:  # fmt: skip
            assert build.stdout is not None
            for line in build.stdout:
                written.write(line)
                written.flush()
                if found := re.match(r"Step (\d+)/(\d+) : (.*)", line):
                    step = f"step {found[1]} of {found[2]}: {' '.join(found[3].split())[:60]}"
                elif step and "Running in" in line:
                    say(f"  {step} ({time.monotonic() - began:.0f} s so far)")
                    step = ""
    return build.returncode


def _context(wheels: Path | None, mpi_wheels: Path | None) -> bytes:
    """A tar of what the Dockerfile copies."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ALWAYS:
            tar.add(ROOT / name, name, filter=_plain)
        if wheels is not None:
            for name in SOURCES:
                tar.add(ROOT / name, name, filter=_plain)
            tar.add(wheels, "docker/cache/wheels", filter=_plain)
        if mpi_wheels is not None:
            tar.add(mpi_wheels, "docker/cache/mpi-wheels", filter=_plain)
    return buffer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leaves out what is made, and makes all that only differs by place and time the same."""
    path = Path(entry.name)
    if path.name in LEFT_OUT or path.suffix in {".so", ".o", ".pyc"}:
        return None
    entry.mtime = STAMP_S
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _wheels() -> Path:
    """The folder of wheels that the service, experiments and its build need; fetched if changed.

    Raises:
        Trouble: there is no pip, or it did not find them.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    runtime = sorted(
        [*project["project"]["dependencies"], *extras["experiments"], *extras["plots"]]
    )
    tools = sorted(project["build-system"]["requires"])
    return _fetched("wheels", runtime=runtime, build=tools)


def _fetched(name: str, **lists: list[str]) -> Path:
    """A folder of the cache with the wheels of these lists, and each list as a file `<list>.txt`.

    Raises:
        Trouble: there is no pip, or it did not find them.
    """
    wanted = tuple(lists.values())
    key = hashlib.sha256(repr((PYTHON, platform.machine(), *wanted)).encode()).hexdigest()
    folder, stamp = CACHE / name, CACHE / f"{name}.key"
    if folder.is_dir() and stamp.exists() and stamp.read_text() == key:
        return folder
    say(f"fetching wheels ({', '.join(lists)})")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    machine = platform.machine()
    # Every glibc tag up to the base image's own.
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(41, 16, -1)]
    done = subprocess.run(
        [
            *_pip(), "download", "-q", "--dest", str(folder), "--only-binary=:all:",
            "--implementation", "cp", "--python-version", PYTHON,
            *(word for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none")
              for word in ("--abi", abi)),
            *(word for tag in [*tags, f"manylinux2014_{machine}"] for word in ("--platform", tag)),
            *(requirement for requirements in wanted for requirement in requirements),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise Trouble(f"pip could not fetch the wheels: {(errors or ['no reason given'])[-1]}")
    for file, requirements in lists.items():
        (folder / f"{file}.txt").write_text("\n".join(requirements) + "\n")
    stamp.write_text(key)
    return folder


def _pip() -> list[str]:
    venv = Path(os.environ.get("SCHEDBRIDGE_VENV") or ROOT / ".venv")
    for python in (sys.executable, str(venv / "bin" / "python")):
        probe = [python, "-P", "-m", "pip", "--version"]
        if not Path(python).exists():
            continue
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return [python, "-P", "-m", "pip"]
    raise Trouble("pip is missing: run scripts/environment first, or apt-get install python3-pip")
