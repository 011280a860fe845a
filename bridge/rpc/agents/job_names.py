# SPDX-License-Identifier: Apache-2.0
"""How agents call running jobs: nodes know a task of an array by its number alone."""

from bridge.model.job import RunningTable


def names_on_nodes(running: RunningTable) -> list[str]:
    """The jobs' ids on the nodes."""
    pairs = zip(running.id.tolist(), running.number.tolist(), strict=True)
    return [str(number) if number > 0 else job_id for job_id, number in pairs]
