# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.planning.malleable.widths import grown_width, shrunk_width

ANY = list(range(1, 33))
EVEN = list(range(2, 33, 2))
POF2 = [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("allowed", "width", "needed", "expected"),
    [
        (EVEN, 8, 6, 2),  # the paper's example
        (EVEN, 8, 5, 2),
        (ANY, 8, 3, 5),
        (ANY, 8, 20, 1),
        (POF2, 8, 3, 4),
        (POF2, 1, 3, 1),
        ([6, 8], 8, 5, 6),
    ],
)
def test_a_job_shrinks_to_the_next_width_that_frees_enough(allowed, width, needed, expected):
    assert shrunk_width(allowed, width, needed) == expected


@pytest.mark.parametrize(
    ("allowed", "width", "idle", "expected"),
    [(POF2, 4, 5, 8), (POF2, 4, 3, 4), (ANY, 4, 3, 7), (EVEN, 4, 1, 4), ([4], 4, 9, 4)],
)
def test_a_job_grows_to_the_largest_width_that_idle_nodes_reach(allowed, width, idle, expected):
    assert grown_width(allowed, width, idle) == expected
