# SPDX-License-Identifier: Apache-2.0
"""Terms of the resource managers in messages to users.

Apart from the dialects, because the commands that ask a running service need nothing else of them,
and should answer at once.
"""

from dataclasses import dataclass
from importlib import import_module

_WORDS = {"slurm": "bridge.slurm.words", "pbs": "bridge.pbs.words"}
"""Name of a dialect, to the module with its `WORDS`."""


@dataclass(frozen=True)
class Words:
    """Terms and commands in messages to users.

    Attributes:
        partition, node, account: what users call them.
        time_limit: what users call the time limit of a job.
        time_option: the submit option for the time limit.
        nodes_option, chunks_option, place_option, switches_option, whole_nodes_option: the submit
            options for a list of nodes, for chunks and their place, for few leaf switches, and for
            nodes that the job has alone.
        time_step_s: time limits are stated in multiples of this, s.
        release_command: makes a held job eligible.
        begin_command: changes the begin time of a job.
        daemon_user: the user that the controller runs as.
    """

    partition: str
    node: str
    account: str
    time_limit: str
    time_option: str
    nodes_option: str
    chunks_option: str
    place_option: str
    switches_option: str
    whole_nodes_option: str
    time_step_s: int
    release_command: str
    begin_command: str
    daemon_user: str

    def nodes(self, count: int) -> str:
        """Writes a number of nodes: "1 node", "3 nodes"."""
        return f"{count} {self.node}{'' if count == 1 else 's'}"


def words_named(dialect: str) -> Words:
    """Returns the words of a dialect; Slurm's for a dialect that only a newer service has."""
    found: Words = import_module(_WORDS.get(dialect, _WORDS["slurm"])).WORDS
    return found
