# SPDX-License-Identifier: Apache-2.0
"""The committed protobuf code is what scripts/protoc makes of proto/."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "bridge" / "rpc" / "pb"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    pytest.importorskip("grpc_tools", reason="grpcio-tools is in the extra 'dev'")
    out = tmp_path_factory.mktemp("pb")
    subprocess.run(
        [ROOT / "scripts" / "protoc", out],
        check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )
    return out


def names(directory):
    return {path.name for path in directory.iterdir() if path.suffix in (".py", ".pyi")}


def test_the_same_files(generated):
    assert names(generated) == names(COMMITTED)


@pytest.mark.parametrize("name", sorted(names(COMMITTED)))
def test_the_same_content(generated, name):
    assert (generated / name).read_text() == (COMMITTED / name).read_text(), (
        "run scripts/protoc and commit bridge/rpc/pb"
    )
