# SPDX-License-Identifier: Apache-2.0
"""Who is on which switch: figures, letters and drawings."""

import dataclasses
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from bridge.lab.report.occupancy import Placed, TreeOccupancy
from bridge.lab.report.topology_svg import colour, topology_svg
from bridge.lab.report.topology_text import LETTERS, jobs_table, tree_text
from bridge.model.hop_tree import HopTree
from bridge.model.topology import Topology, fat_tree, regular
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each

SVG = "{http://www.w3.org/2000/svg}"


def placed(name: str, *nodes: int, running: bool = True) -> Placed:
    return Placed(name, f"run{name}", "ann", np.array(nodes, np.int32), 100, running)


def occupied(topology: Topology, *jobs: Placed, down: tuple[int, ...] = ()) -> TreeOccupancy:
    count = len(topology.leaf_of_node)
    closed = np.isin(np.arange(count), down)
    names = [f"n{i + 1}" for i in range(count)]
    return TreeOccupancy.of(topology, names, down=closed, jobs=jobs, now_s=1)


SMALL = regular(8, 2, 4)
"""Two pods of two leaf switches of two nodes."""


def plain(occupancy: TreeOccupancy, **how: object) -> list[str]:
    return [line.rstrip() for line in tree_text(occupancy, **how).plain.splitlines()]  # type: ignore[arg-type]


def test_the_tree_as_text() -> None:
    shown = plain(occupied(SMALL, placed("1", 0, 1, 2), placed("2", 4), down=(3, 4)))
    assert shown == [
        "top  3 idle, 4 busy, 1 down",
        " ss0  3 busy, 1 down",
        "  s0  AA",
        "  s1  A!",
        " ss1  3 idle, 1 busy",
        "  s2  B.",
        "  s3  ..",
    ]


def test_hops_are_a_mean_over_pairs_and_the_cost_is_the_papers() -> None:
    jobs = [placed("a", 0, 1), placed("b", 2, 4), placed("c", 5, 6, 7), placed("d", 3)]
    occupancy = occupied(SMALL, *jobs)
    by_id = dict(zip((job.id for job in occupancy.jobs), occupancy.compactness, strict=True))
    assert [by_id[name].hops for name in "abcd"] == [2, 6, (2 + 4 + 4) / 3, 0]
    assert [by_id[name].leaf_switches for name in "abcd"] == [1, 2, 2, 1]
    nodes = np.array([5, 6, 7], np.int32)
    cost = HopTree.of(SMALL).costs((np.array([0, 3]), nodes))[0]
    assert by_id["c"].cost == cost


@each(seed=range(20))
def test_hops_equal_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    topology = fat_tree(8, int(rng.integers(20, 129)))
    count = len(topology.leaf_of_node)
    nodes = np.sort(rng.permutation(count)[: rng.integers(2, 20)])

    def above(node: int) -> list[int]:
        found, switch = [], int(topology.leaf_of_node[node])
        while switch >= 0:
            found.append(switch)
            switch = int(topology.parent[switch])
        return found

    pairs = [
        2 * next(i + 1 for i, switch in enumerate(above(a)) if switch in above(b))
        for a, b in itertools.combinations(nodes.tolist(), 2)
    ]
    how = occupied(topology, placed("1", *nodes.tolist())).compactness[0]
    assert how.hops == pytest.approx(np.mean(pairs))


def test_across_fabrics_and_off_the_switches() -> None:
    two = Topology(("a", "b"), np.array([-1, -1], np.int32), np.array([0, 0, 1, 1, -1], np.int32))
    occupancy = occupied(two, placed("1", 1, 2), placed("2", 3, 4))
    assert [how.hops for how in occupancy.compactness] == [np.inf, None]
    assert [job["hops_per_pair"] for job in occupancy.plain()["jobs"]] == ["across fabrics", None]
    assert plain(occupancy) == ["a  .A", "b  AB", "on no switch  1 busy", "  B"]
    assert "on no switch" in topology_svg(occupancy, "x")
    assert occupancy.plain()["fabrics"] == 2


def test_long_rows_are_folded_and_like_switches_are_joined() -> None:
    wide = plain(occupied(regular(200, 100)), width=40)
    assert max(map(len, wide)) <= 40
    assert sum(line.count(".") for line in wide) == 200
    topology = regular(1000, 10, 100)
    shown = plain(occupied(topology, placed("1", *range(20))), width=80)
    assert shown[1:4] == [
        " ss0  80 idle, 20 busy",
        "  s0..s1  2 x AAAAAAAAAA",
        "  s2..s9  8 x ..........",
    ]
    assert len(shown) == 1 + 10 + 11
    assert len(plain(occupied(topology), fold=False)) == 1 + 10 + 100


def test_jobs_beyond_the_letters_are_not_joined() -> None:
    topology = regular(200, 2)
    jobs = [placed(str(i), 2 * i, 2 * i + 1) for i in range(100)]
    shown = plain(occupied(topology, *jobs))
    assert sum("++" in line for line in shown) == 100 - len(LETTERS)


def test_several_jobs_share_a_node() -> None:
    occupancy = occupied(SMALL, placed("1", 0, 1), placed("2", 1))
    assert plain(occupancy)[2] == "  s0  A&"
    root = ElementTree.fromstring(topology_svg(occupancy, "x"))
    tips = [tip.text or "" for tip in root.iter(f"{SVG}title")]
    assert any("job 1" in tip and "job 2" in tip and tip.startswith("n2:") for tip in tips)


def test_a_terminal_shows_colours_and_others_do_not() -> None:
    text = tree_text(occupied(SMALL, placed("1", 0, 1, 2)))
    for forced, coloured in ((True, True), (False, False)):
        screen = Console(force_terminal=forced, color_system="truecolor" if forced else None)
        with screen.capture() as captured:
            screen.print(text)
        assert ("\x1b[" in captured.get()) is coloured


def test_the_list_of_jobs() -> None:
    occupancy = occupied(SMALL, placed("1", 0, 1, 2), placed("22", 4, running=False))
    screen = Console(width=80, color_system=None)
    with screen.capture() as captured:
        screen.print(jobs_table(occupancy, 5))
    lines = captured.get().splitlines()
    assert lines[1].split() == ["A", "1", "ann", "run1", "3", "2", "3.33"]
    assert lines[2].split() == ["B", "22", "ann", "run22", "1", "1", "-", "starts", "now"]


@pytest.mark.parametrize(
    "topology",
    [
        regular(1, 1),
        SMALL,
        regular(300, 300),
        regular(1000, 10, 100),
        fat_tree(36),
        regular(900, 1),
    ],
    ids=["one", "small", "one switch", "pods", "k=36", "a node a switch"],
)
def test_the_drawing_has_every_node_once_and_lies_within_its_frame(topology: Topology) -> None:
    count = len(topology.leaf_of_node)
    jobs = [placed(str(i), *range(i * 7, min(i * 7 + 5, count))) for i in range(count // 7)]
    occupancy = occupied(topology, *jobs, down=(count - 1,))
    root = ElementTree.fromstring(topology_svg(occupancy, "the <&> title"))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    cells = [
        rect
        for rect in root.iter(f"{SVG}rect")
        if rect.attrib.get("class") in ("i", "d", "j") and rect.find(f"{SVG}title") is not None
    ]
    names = [(rect.find(f"{SVG}title").text or "").split(":")[0] for rect in cells]  # type: ignore[union-attr]
    assert sorted(names) == sorted(occupancy.names)
    places = {(rect.attrib["x"], rect.attrib["y"]) for rect in cells}
    assert len(places) == count
    for rect in cells:
        assert 0 <= float(rect.attrib["x"]) <= width - float(rect.attrib["width"])
        assert 0 <= float(rect.attrib["y"]) <= height - float(rect.attrib["height"])
    fills = [rect.attrib["fill"] for rect in cells if rect.attrib["class"] == "j"]
    assert set(fills) <= {colour(i) for i in range(len(jobs))}
    assert max(width, height) < 8000


def test_what_users_write_does_not_break_the_drawing() -> None:
    job = Placed("1", '<script>&"\x1b\x00', "a\nb", np.array([0], np.int32), 1)
    text = topology_svg(occupied(SMALL, job), 'a"<b>')
    ElementTree.fromstring(text)
    assert "<script>" not in text
    assert "\x1b" not in text
    lines = tree_text(occupied(dataclasses.replace(SMALL, names=("\x1b[1m", *SMALL.names[1:]))))
    assert "\x1b" not in lines.plain


def test_a_cycle_shows_what_runs_and_what_it_starts() -> None:
    snapshot = a_snapshot(
        nodes=[a_node(usable=at != 3) for at in range(8)],
        jobs=[a_job(id="7", nodes=2)],
        running=[a_running_job(id="5", nodes=(0, 1))],
    )()
    occupancy = TreeOccupancy.of_cycle(
        snapshot, Decider(build(PRESETS["easy"])).decide(snapshot), SMALL
    )
    assert [(job.id, job.running) for job in occupancy.jobs] == [("5", True), ("7", False)]
    assert occupancy.down.tolist() == [False] * 3 + [True] + [False] * 4
    assert re.search("starts now", topology_svg(occupancy, "x"))
    assert occupancy.plain()["nodes"][3]["words"] == "DOWN"


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        TreeOccupancy.of(
            Topology(("a", "b"), np.array([1, 0], np.int32), np.array([0], np.int32)), ["n1"]
        )
