# SPDX-License-Identifier: Apache-2.0
"""What is learnt of running jobs, by application."""

import numpy as np

from bridge.extensions.sharing.histories import application, applications, follow
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.learnt import Learning, Learnt
from schedbridge_contracts.builders import a_node, a_running_job, a_snapshot


def test_a_job_that_gives_nodes_back_is_followed_as_one_application():
    """Of two such jobs and a third, each; whatever the width of what they give back."""
    running = [
        a_running_job((0, 1, 2), 9000, user="ann", id="1", measured_s=900, cpu_s=5.0),
        a_running_job((3, 4, 5, 6), 9000, user="bob", id="2", measured_s=900, cpu_s=7.0),
        a_running_job((7,), 9000, user="bob", id="3", measured_s=900, cpu_s=9.0),
    ]
    snapshot = a_snapshot(nodes=[a_node() for _ in range(8)], running=running, now_s=1000)()
    snapshot = resized(
        snapshot,
        Resizes.of([(0, 1050, np.array([0]), ""), (1, 1060, np.array([3, 4, 5]), "")]),
    )
    assert len(snapshot.running) == 5
    learning = Learning(Learnt())
    follow(snapshot, applications(snapshot, learning), learning)
    names = snapshot.running.name
    widths = {"1": ("ann", 1), "2": ("bob", 3), "3": ("bob", 1)}
    followed = learning.running.in_order()
    assert len(followed) == 3
    for row, (job_id, (user, width)) in enumerate(widths.items()):
        app = application(user, str(names[row]), width)
        assert [key for key in followed if key.endswith(app)], (job_id, followed)
