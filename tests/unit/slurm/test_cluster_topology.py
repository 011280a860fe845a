# SPDX-License-Identifier: Apache-2.0
"""The switches of `scripts/cluster`: its fat trees, and which of its files say so."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.model.topology import fat_tree
from bridge.slurm.topology_conf import parse_topology

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docker"))

from cluster import life, switches  # noqa: E402
from cluster.engine import Trouble  # noqa: E402
from cluster.site import Site  # noqa: E402


@pytest.mark.parametrize(
    ("nodes", "ports"), [(1, 8), (3, 8), (16, 8), (17, 8), (64, 8), (128, 8), (129, 10), (1000, 16)]
)
def test_it_is_the_pruned_fat_tree(nodes: int, ports: int) -> None:
    names = [f"n{i + 1}" for i in range(nodes)]
    written = parse_topology(switches.fat_tree(nodes), names)
    meant = fat_tree(ports, nodes)
    assert written.leaf_of_node.tolist() == meant.leaf_of_node.tolist()
    assert written.parent.tolist() == meant.parent.tolist()
    assert np.count_nonzero(written.parent < 0) == 1


def test_slurm_and_the_service_read_the_same_file() -> None:
    site = Site(nodes=64, topology="tree")
    files = site.files()
    assert "TopologyPlugin=topology/tree\n" in files["slurm.conf"]
    assert files["topology.conf"] == switches.fat_tree(64)
    config = life._service_config(site, life.SERVICE_CONFIG)
    assert config.endswith("\ntopology: /etc/slurm/topology.conf\n")


def test_the_bridge_alone_knows_the_switches() -> None:
    site = Site(nodes=64, topology="tree", topology_for="bridge")
    files = site.files()
    assert "TopologyPlugin" not in files["slurm.conf"]
    assert "topology.conf" not in files
    assert files["schedbridge/topology.conf"] == switches.fat_tree(64)
    config = life._service_config(site, life.SERVICE_CONFIG)
    assert config.endswith("\ntopology: /etc/slurm/schedbridge/topology.conf\n")


def test_without_switches_nothing_is_written_of_them() -> None:
    site = Site(nodes=4)
    files = site.files()
    assert not any("topology" in name.lower() for name in (*files, files["slurm.conf"]))
    assert life._service_config(site, life.SERVICE_CONFIG) == life.SERVICE_CONFIG.read_text()


def test_a_file_of_blocks(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("# racks\nBlockName=b1 Nodes=n[1-4]\nBlockSizes=4\n")
    files = Site(nodes=4, topology=str(path)).files()
    assert "TopologyPlugin=topology/block\n" in files["slurm.conf"]


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="--topology: 'tree' or a file"):
        Site(topology=str(tmp_path / "none"))
    with pytest.raises(Trouble, match="--topology-for bridge needs --topology"):
        Site(topology_for="bridge")
    with pytest.raises(Trouble, match="needs --topology, and the bridge"):
        Site(topology="tree", topology_for="bridge", bridge=False, scheduler="backfill")
    own = tmp_path / "bridge.yaml"
    own.write_text("topology: /etc/mine.conf\n")
    with pytest.raises(Trouble, match="names another than"):
        life._service_config(Site(topology="tree"), own)
    own.write_text("topology: null\npolicy: easy\n")
    assert life._service_config(Site(topology="tree"), own) == (
        "policy: easy\ntopology: /etc/slurm/topology.conf\n"
    )
    kept = "topology:\n  file: /etc/slurm/topology.conf\n  wait_s: 30\npolicy: easy\n"
    own.write_text(kept)
    assert life._service_config(Site(topology="tree"), own) == kept
    own.write_text("topology:\n  file: /etc/slurm/topology.conf.old\n")
    with pytest.raises(Trouble, match="names another"):
        life._service_config(Site(topology="tree"), own)
