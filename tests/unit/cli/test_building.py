# SPDX-License-Identifier: Apache-2.0
"""Libraries that ship as source are compiled by one command each."""

import ctypes
import subprocess

import pytest
from typer.testing import CliRunner

from bridge.cli.operators.elastic import app
from bridge.errors import ConfigError
from bridge.extensions.elastic import library


def build(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_library_that_measures_time_in_mpi_can_be_loaded(tmp_path):
    """Slow: compiles the library."""
    done = build("build-mpi-time", "--out", tmp_path / "made")
    assert done.exit_code == 0, done.output
    file = tmp_path / "made" / "libschedbridge_mpitime.so"
    assert str(file) in done.output.replace("\n", "")
    assert ctypes.CDLL(str(file)).MPI_Barrier


def test_the_library_for_programs_is_compiled_by_the_compiler_that_is_named(tmp_path):
    compiler = tmp_path / "a-mpicc"
    compiler.write_text("""#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo "made by me" >"$2"; shift; done
""")
    compiler.chmod(0o755)
    done = build("build-library", "--mpicc", compiler, "--out", tmp_path / "made")
    assert done.exit_code == 0, done.output
    listed = {file.name for file in (tmp_path / "made").iterdir()}
    assert {"libbridge_elastic.a", "bridge_elastic.h", "bridge_elastic.f90"} <= listed
    packed = subprocess.run(
        ["ar", "t", tmp_path / "made" / "libbridge_elastic.a"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert len(packed) == len(list(library.FOLDER.glob("*.c")))


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("build-library", "--mpicc", "no-such-compiler"), "--mpicc"),
        (("build-mpi-time", "--cc", "false"), "--cc"),
    ],
)
def test_what_make_says_is_told(tmp_path, words, key):
    done = build(*words, "--out", tmp_path)
    assert isinstance(done.exception, ConfigError)
    assert done.exception.key == key


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    done = build("build-mpi-time", "--out", tmp_path / "file" / "x")
    assert isinstance(done.exception, ConfigError)
    assert "--out" in str(done.exception)
