# SPDX-License-Identifier: Apache-2.0
"""Under lowered limits and FreePools, the book starts each job at the first second that they allow.

The rules are read second by second (`tests.properties.test_rules.Seconds`); nodes are no matter.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core import Book, pack_nodes
from bridge.model.rules.limits import Rules
from bridge.planning.site_rules.capacity_constraints import Mode, Terms
from tests.properties.test_rules import (
    END,
    Seconds,
    jobs,
    limit_lists,
    lowered_terms,
    pools,
    running,
    world,
)

ROOM = 1000


def columns(terms: Terms, job: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = terms.of(job)
    return terms.constraint[own], terms.amount[own], terms.mode[own]


@settings(max_examples=300, deadline=None)
@given(
    limit_lists,
    st.lists(pools, max_size=2),
    st.lists(running, max_size=2),
    st.lists(jobs, min_size=1, max_size=6),
)
def test_the_book_plans_at_the_first_second_that_the_rules_allow(
    given_limits, given_pools, held, waiting
):
    rules = Rules(tuple(given_limits), tuple(given_pools))
    lowered, terms = lowered_terms(rules, world(waiting, held))
    seconds = Seconds(rules, held)
    book = Book(0, np.array([[ROOM]], dtype=np.int64), np.zeros(1, dtype=np.int32))
    one = np.ones(1, dtype=np.int64)
    everywhere = book.add_class(pack_nodes(np.ones((1, 1), dtype=bool))[0])
    request = book.add_request(one, one.reshape(1, 1), np.array([everywhere], dtype=np.int32))
    for constraint in range(len(lowered.constraints)):
        assert book.add_constraint(*lowered.constraints.steps(constraint)) == constraint
    where = [np.zeros(1, dtype=np.int32)] * 2 + [np.ones(1, dtype=np.int32)]
    for index, (_, start, end) in enumerate(seconds.placed):
        own = columns(lowered.running, index)
        assert set(own[2].tolist()) <= {Mode.COUNT}
        assert book.book(-1 - index, request, start, end - start, own, *where)
    for index, job in enumerate(waiting):
        found = book.find(request, job.limit_s, columns(terms, index))
        first = next((at for at in range(6 * END) if seconds.admits(job, at)), None)
        assert (None if found is None else found[0]) == first
        if terms.reasons[index] is not None:
            assert found is None
        if found is not None:
            start, *on = found
            assert book.book(index, request, start, job.limit_s, columns(terms, index), *on)
            seconds.placed.append((job, start, start + job.limit_s))
