# SPDX-License-Identifier: Apache-2.0
"""Chunks in Slurm's words, by the table that the plugin in C is tested with, too."""

from pathlib import Path

import pytest

from bridge.dialect import ControllerRequest
from bridge.errors import RequestError
from bridge.planning.requests.chunks import parse_request
from bridge.slurm.request import slurm_request

CASES = [
    tuple(part.strip() for part in line.split(";"))
    for line in (Path(__file__).parents[2] / "shim" / "chunks.cases").read_text().splitlines()
    if line and not line.startswith("#")
]
GENERIC = frozenset({"gpu", "fpga"})


def sbatch_options(held: ControllerRequest) -> list[str]:
    """Returns the options of sbatch that state a request."""
    nodes = f"{held.min_nodes}-{held.max_nodes}"
    found = [
        f"--nodes={held.min_nodes if held.min_nodes == held.max_nodes else nodes}",
        f"--ntasks={held.tasks}",
        f"--cpus-per-task={held.cpus_per_task}",
    ]
    if held.all_memory:
        found.append("--mem=0")
    elif held.memory_per_node_mib:
        found.append(f"--mem={held.memory_per_node_mib}M")
    elif held.memory_per_cpu_mib:
        found.append(f"--mem-per-cpu={held.memory_per_cpu_mib}M")
    if held.per_node:
        found.append("--gres=" + ",".join(f"{name}:{n}" for name, n in held.per_node))
    if held.per_task:
        words = ",".join(f"gres/{name}={n}" for name, n in held.per_task)
        found.append(f"--tres-per-task={words}")
    if held.gpus:
        found.append(f"--gpus={held.gpus}")
    if held.constraint:
        found.append(f"--constraint={held.constraint}")
    if held.node:
        found.append(f"--nodelist={held.node}")
    if held.licences:
        found.append(f"--licenses={held.licences}")
    if held.exclusive:
        found.append("--exclusive")
    return found


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
    assert refused.value.position + 1 == int(position)
