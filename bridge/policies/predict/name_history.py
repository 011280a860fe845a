# SPDX-License-Identifier: Apache-2.0
"""Predicts the run time of the user's last similar job, by name, queue, time limit and size.

Terms
    stem        a job's name without its trailing digits, as users number similar jobs.
    size        the nodes of a job that has them exclusively; otherwise all resources it asks for.

Rules, each on the jobs of one user; the first rule that finds an ended job gives its run time
    1. The same name, queue, time limit and size.
    2. The same stem, queue, time limit and size.
    3. The same name, queue and time limit.
    4. The same stem, queue and time limit.
    5. The same name.
    6. The same stem.
    7. Otherwise the time limit, which also bounds all predictions.
Of several ended jobs the last to end counts. Extensions and patience are those of last-two.

Source: C. Galleguillos, A. Sirbu, Z. Kiziltan, O. Babaoglu, A. Borghesi, T. Bridi, Data-driven job
dispatching in HPC systems, MOD 2017 (the rules made for Eurora).
Deviates: patience is ours; null is as in the source. The paper itself was not available; its rules
are reconstructed from descriptions by others. There the similarity of names is the length of their
common prefix, and among jobs of different sizes the most similar counts. Here names are similar
if their stems are equal, and the last job counts, so that a prediction costs six look-ups. Jobs
without a name have the same name, so that rules 1 and 3 compare queue, limit and size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import EndedTable
from bridge.model.learnt import Learning
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.run_times import Expectation

_Trait = tuple[str, str, str, int, str]  # user, name, queue, limit, size
_DIGITS = "0123456789"
_APART = "\x1f"


@dataclass(frozen=True)
class NameHistory(Expectation):
    """The run time of the user's last similar job.

    Attributes: see `Expectation`; `patience_s` null is as in the source.
    """

    name: ClassVar[str] = "name-history"

    def waiting(self, snapshot: Snapshot) -> Sequence[_Trait]:
        """User, name, queue, limit and size."""
        jobs = snapshot.jobs
        names = [part.name for part in snapshot.partitions]
        queues = [names[named[0]] if named else "" for named in jobs.partitions]
        wants = jobs.per_node * jobs.min_nodes[:, None] + jobs.per_task * jobs.tasks[:, None]
        sizes = _sizes(jobs.exclusive, jobs.min_nodes, wants)
        columns = (jobs.user.tolist(), jobs.name.tolist(), queues, jobs.time_limit_s.tolist())
        return list(zip(*columns, sizes, strict=True))

    def running(self, snapshot: Snapshot, rows: Sequence[int]) -> Sequence[_Trait]:
        """As far as the request follows from the allocation."""
        running = snapshot.running
        names = [part.name for part in snapshot.partitions]
        traits = []
        for row in rows:
            held = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
            count = np.array([held.stop - held.start])
            use = running.use[held].sum(axis=0, keepdims=True)
            at = int(running.partition[row])
            traits.append(
                (
                    running.user[row],
                    running.name[row],
                    names[at] if at >= 0 else "",
                    int(running.end_s[row] - running.start_s[row]),
                    *_sizes(running.exclusive[row : row + 1], count, use),
                )
            )
        return traits

    def ended(self, ended: EndedTable, rows: Sequence[int]) -> Sequence[_Trait]:
        """User, name and limit: rules 5 and 6 can use them."""
        return [
            (ended.user[row], ended.name[row], "", int(ended.time_limit_s[row]), "") for row in rows
        ]

    def expect(self, learnt: Learning, trait: _Trait) -> int:
        """The run time by the first rule that finds a job."""
        of_user = learnt.guesses.setdefault(trait[0], {})
        found = of_user.get(trait)
        if found is None:
            known = learnt.known
            last = next((known[key] for key in _keys(trait) if key in known), (0,))
            found = of_user[trait] = last[0]
        return found

    def learn(self, learnt: Learning, trait: _Trait, run_s: int) -> None:
        """Becomes the last job by all rules."""
        for key in _keys(trait):
            learnt.learn(trait[0], key, [max(run_s, 1)])


def _keys(trait: _Trait) -> tuple[str, ...]:
    """The key of the job under each of the rules."""
    user, name, queue, limit_s, size = trait
    stem, limit = name.rstrip(_DIGITS), str(limit_s)
    return tuple(
        _APART.join(parts)
        for parts in (
            ("1", user, name, queue, limit, size),
            ("2", user, stem, queue, limit, size),
            ("3", user, name, queue, limit),
            ("4", user, stem, queue, limit),
            ("5", user, name),
            ("6", user, stem),
        )
    )


def _sizes(
    exclusive: NDArray[np.bool_], nodes: NDArray[np.int64], wants: NDArray[np.int64]
) -> list[str]:
    """(n,) a text for the request of each job."""
    known: dict[tuple[int, ...], str] = {}
    words = []
    rows = zip(exclusive.tolist(), nodes.tolist(), map(tuple, wants.tolist()), strict=True)
    for alone, count, amounts in rows:
        if alone:
            words.append(f"{count} nodes")
        else:
            words.append(known.setdefault(amounts, " ".join(map(str, amounts))))
    return words
