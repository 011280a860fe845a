# SPDX-License-Identifier: Apache-2.0
"""`lab record`, `replay` and `bench dispatch`: files, figures, and what a mistake says."""

import json
from importlib.resources import files

import pytest

from bridge.cli.simulation.comparison import bundled
from bridge.recording.recordings import find_recordings, read_recording

EXCERPT = str(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))
DESCRIPTION = "nodes: [{names: 'n[1-6]', cpus: 32, memory_mib: 1000}]\n"


@pytest.fixture
def recorded(schedbridge, tmp_path):
    """Three cycles of the excerpt."""
    out = tmp_path / "cycles"
    code, said, _ = schedbridge(
        "lab", "record", "--trace", EXCERPT, "--jobs", 300, "--out", out, "--min-queue", 12,
        "--every", 20, "--cycles", 3,
    )  # fmt: skip
    assert (code, said) == (0, f"3 cycles in {out}\n")
    return out


def test_a_trace_is_recorded_where_its_queue_is_long_enough(recorded):
    paths = find_recordings(recorded)
    assert [path.name for path in paths] == [
        f"KTH-SP2-1996-excerpt-{number:03d}.cycle.json.gz" for number in (1, 2, 3)
    ]
    for path in paths:
        assert path.stat().st_mode & 0o777 == 0o600
        found = read_recording(path)
        assert len(found.snapshot.jobs) >= 12
        assert found.policy.name == "easy"
        assert "Malinowsky" in found.origin["acknowledge"]


def test_the_same_seed_gives_the_same_bytes(schedbridge, tmp_path):
    for name in ("a", "b"):
        code, _, err = schedbridge(
            "lab", "record", "--system", "eurora", "--jobs", 200, "--load", 1.5, "--seed", 7,
            "--predict", "last-two", "--min-queue", 3, "--cycles", 2, "--out", tmp_path / name,
        )  # fmt: skip
        assert code == 0, err
    for one, other in zip(*(find_recordings(tmp_path / name) for name in "ab"), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_cycles_at_given_times(schedbridge, tmp_path):
    code, _, _ = schedbridge(
        "lab", "record", "--trace", EXCERPT, "--jobs", 300, "--out", tmp_path, "--at", 100_000,
        "--at", 200_000, "--min-queue", 0,
    )  # fmt: skip
    assert code == 0
    times = [read_recording(path).snapshot.now_s for path in find_recordings(tmp_path)]
    assert len(times) == 2
    assert times[0] + 90_000 < times[1]


def test_a_replay_with_the_recorded_policy_gives_the_same_starts(schedbridge, recorded):
    code, out, _ = schedbridge("lab", "replay", recorded, "--json")
    assert code == 0
    replays = json.loads(out)["replays"]
    assert len(replays) == 3
    for one in replays:
        assert one["same_starts"]
        assert one["moved"] == []
        assert one["recorded"] == one["replayed"]
        assert not one["failed"]


def test_a_replay_with_another_policy_shows_what_moves(schedbridge, recorded):
    path = find_recordings(recorded)[0]
    code, out, _ = schedbridge("lab", "replay", path, "--policy", "conservative")
    assert code == 0
    assert "not planned -> in " in out
    assert "mean slowdown" in out
    assert "Malinowsky" in out


def test_a_replay_waits_until_its_solver_is_ready(schedbridge, recorded, tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text("preset: hcp19\nplan: {name: hcp19, budget_ms: 300}\n")
    code, out, _ = schedbridge("lab", "replay", recorded, "--policy", policy, "--json")
    assert code == 0
    reasons = [one["fallback"] for one in json.loads(out)["replays"]]
    assert len(reasons) == 3
    assert "starting" not in reasons


def test_a_small_system_is_drawn(schedbridge, tmp_path):
    system = tmp_path / "system.yaml"
    system.write_text(DESCRIPTION)
    assert schedbridge(
        "lab", "record", "--trace", EXCERPT, "--jobs", 200, "--system", system, "--out", tmp_path,
        "--min-queue", 2, "--cycles", 1,
    )[0] == 0  # fmt: skip
    code, out, _ = schedbridge("lab", "replay", tmp_path)
    assert code == 0
    assert "\nn1 " in out
    assert "a=" in out


def test_copies_without_names_give_the_same_starts(schedbridge, recorded, tmp_path):
    nameless = tmp_path / "nameless"
    code, out, _ = schedbridge("lab", "replay", recorded, "--anonymise", nameless, "--json")
    assert code == 0
    assert all(one["same_starts"] for one in json.loads(out)["replays"])
    users = set()
    for path in find_recordings(nameless):
        users |= set(read_recording(path).snapshot.jobs.user.tolist())
    assert users
    assert users <= {f"user{number}" for number in range(1, 40)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--system", "cray"], "no stream 'cray'; there are eurora, kit"),
        (["--every", 2], "--site are for simulations: give --trace or --system"),
        (["--trace", EXCERPT, "--policy", "best"], "'best' is neither a preset"),
        (["--trace", EXCERPT, "--predict", "dice"], "no algorithm 'dice'"),
        (["--trace", EXCERPT, "--jobs", 20, "--min-queue", 999], "nothing recorded: no cycle had"),
        (["--system", "eurora", "--procs", 4], "procs: is for traces on a pool"),
        (["--socket", "/nowhere/s"], "no service at /nowhere/s"),
    ],
)
def test_a_mistake_in_recording_is_one_line(schedbridge, tmp_path, arguments, said):
    code, out, err = schedbridge("lab", "record", "--out", tmp_path / "x", *arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


def test_mistakes_in_replaying_are_one_line(schedbridge, recorded, tmp_path):
    broken = tmp_path / f"broken{find_recordings(recorded)[0].name}"
    broken.write_bytes(find_recordings(recorded)[0].read_bytes()[:200])
    for arguments, said in (
        ([broken], f"{broken}: is cut off or damaged"),
        ([tmp_path / "none"], "none: cannot be read: No such file"),
        ([recorded, "--policy", "best"], "'best' is neither a preset"),
    ):
        code, _, err = schedbridge("lab", "replay", *arguments)
        assert code == 1
        assert said in err
        assert err.count("\n") == 1


def test_policies_side_by_side(schedbridge, recorded):
    code, out, err = schedbridge(
        "lab",
        "compare",
        "--instances",
        recorded,
        "--policies",
        "easy,conservative",
        "--json",
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["instances"] == 3
    assert [one["name"] for one in found["policies"]] == ["easy", "conservative"]
    figures = found["groups"]["all"]
    assert list(figures) == ["easy", "conservative"]
    for one in figures.values():
        assert one["mean"] >= 1
        assert one["relative"] >= 1
        assert one["decision_ms"]["max"] >= one["decision_ms"]["p50"] > 0
        assert one["failed"] == 0
    assert sum(one["best_of"] for one in figures.values()) >= 3
    assert len(found["results"]) == 6
    # EASY is completed: every job that conservative starts has a start under both.
    rows = {(one["instance"], one["rows"]) for one in found["results"]}
    assert len(rows) == 3


def test_the_bundled_instances_are_the_default(schedbridge):
    code, out, _ = schedbridge("lab", "compare", "--policies", "easy", "--min-queue", 200)
    assert code == 0
    assert "less is better" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policies", "easy@50"], "'easy@50': easy has no budget"),
        (["--policies", "easy@x"], "after the @, give a budget in ms"),
        (["--policies", ","], "is empty; give"),
        (["--policies", "easy,easy"], "easy is listed twice"),
        (["--objective", "beauty"], "there is no 'beauty'"),
        (["--min-queue", "10000000"], "has 10000000 waiting jobs"),
    ],
)
def test_a_mistake_in_comparing_is_one_line(schedbridge, recorded, arguments, said):
    code, _, err = schedbridge("lab", "compare", "--instances", recorded, *arguments)
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_every_bundled_instance_is_sound_small_and_says_where_it_is_from():
    paths = find_recordings(bundled())
    assert len(paths) >= 36
    assert sum(path.stat().st_size for path in paths) < 1_000_000
    for path in paths:
        found = read_recording(path)
        assert len(found.snapshot.jobs) >= 10, path
        assert "stream" in found.origin or "trace" in found.origin, path
        if path.parent.name in ("eurora", "kit") and not path.name.startswith("eurora-3"):
            assert found.plan.predicted is not None, path
