# SPDX-License-Identifier: Apache-2.0
"""Jobs of several users on a node of a real Slurm, by the site's setting."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.decider import Decider
from tests.integration.slurm import Cluster
from tests.integration.test_sharing import a_host, submit
from tests.integration.test_sharing_priorities import plain_cluster, sharing

__all__ = ["plain_cluster", "sharing"]
"""Fixtures."""


@contextmanager
def scope(cluster: Cluster, value: str) -> Iterator[None]:
    """Whose jobs may share, until the end of the block."""
    path, silence = "/etc/slurm/schedbridge/bridge.conf", "bridge_silence_s=5"
    more = f"{silence},bridge_coschedule_scope={value}"
    shown = f"scontrol show config | grep bridge_coschedule_scope={value} || true"
    try:
        cluster.inside("controller", "sed", "-i", f"s/{silence}/{more}/", path)
        cluster.root("scontrol", "reconfigure")
        cluster.wait_for("the scope", lambda: cluster.root("sh", "-c", shown))
        yield
    finally:
        cluster.inside("controller", "sed", "-i", f"s/{more}/{silence}/", path)
        cluster.root("scontrol", "reconfigure")


@pytest.mark.parametrize(
    ("value", "account", "may"),
    [("account", "chemistry", True), ("account", "biology", False), ("all", "biology", True)],
)
def test_jobs_of_several_users_share_where_the_site_says_so(
    sharing: Decider, value: str, account: str, may: bool
) -> None:
    cluster = sharing.cluster
    with scope(cluster, value):
        host = a_host(sharing, "-A", "chemistry")
        guest = submit(cluster, "--coschedule=guest", "-A", account, user="alice")
        said = sharing.start_guest(guest, host)
        assert (said["outcome"] == "OUTCOME_APPLIED") is may, said
        if may:
            cluster.wait_state(guest, "RUNNING")
            assert " CPUAlloc=2 " in cluster.run("scontrol", "show", "node", "n1")
        else:
            assert "different users" in str(said["text"]), said
        cluster.root("scancel", host, guest)
        cluster.wait_empty()
