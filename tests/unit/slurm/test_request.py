# SPDX-License-Identifier: Apache-2.0
"""Chunks in Slurm's words, by the table that the plugin in C is tested with, too."""

from pathlib import Path

import pytest

from bridge.errors import RequestError
from bridge.planning.requests.chunks import parse_request
from bridge.slurm.request import sbatch_options, slurm_request

CASES = [
    tuple(part.strip() for part in line.split(";"))
    for line in (Path(__file__).parents[2] / "shim" / "chunks.cases").read_text().splitlines()
    if line and not line.startswith("#")
]
GENERIC = frozenset({"gpu", "fpga"})


@pytest.mark.parametrize(
    ("chunks", "place", "options"),
    [case for case in CASES if not case[2].startswith("!")],
    ids=lambda text: text or "-",
)
def test_what_slurm_is_told(chunks: str, place: str, options: str) -> None:
    assert " ".join(sbatch_options(slurm_request(parse_request(chunks, place), GENERIC))) == options


@pytest.mark.parametrize(
    ("chunks", "place", "where"),
    [case for case in CASES if case[2].startswith("!")],
    ids=lambda text: text or "-",
)
def test_what_is_refused(chunks: str, place: str, where: str) -> None:
    with pytest.raises(RequestError) as refused:
        slurm_request(parse_request(chunks, place), GENERIC)
    part, position = where[1:].split()
    if position == "0":
        return
    assert refused.value.text == {"chunks": chunks, "place": place}[part]
    assert refused.value.position + 1 == int(position), refused.value.pointed
