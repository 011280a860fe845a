# SPDX-License-Identifier: Apache-2.0
"""A run of senseless messages that goes on where it was stopped."""

import json

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz.harness import MESSAGES, Broken


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command in this process's children; its exit code and its output."""

    def ended(*words):
        monkeypatch.setattr("sys.argv", ["tests.fuzz", *map(str, words)])
        code = fuzz.main()
        return code, capsys.readouterr().out

    return ended


@pytest.fixture
def episodes(monkeypatch):
    """Episodes that cost nothing; those whose numbers are in the set break a rule."""
    bad = set()

    class Episode:
        strict = False

        def __init__(self, seed):
            self.seed = seed

        def run(self):
            if int(self.seed.partition(":")[2]) in bad:
                raise Broken(f"a rule; repeat: --episode {self.seed}")
            return {"messages": MESSAGES}

    monkeypatch.setattr(fuzz, "Episode", Episode)
    return bad


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_was_played_is_not_played_again(run, episodes, tmp_path):
    done = tmp_path / "folder" / "done.jsonl"
    code, first = run("--rounds", 70 * MESSAGES, "--seed", 5, "--jobs", 1, "--done", done)
    assert (code, [line["episodes"] for line in lines(done)]) == (0, [50, 20])
    code, more = run("--rounds", 120 * MESSAGES, "--jobs", 2, "--done", done)
    assert code == 0
    assert f"seed 5: {50 * MESSAGES} of {120 * MESSAGES} rounds to do" in more
    assert f"seed 5: {70 * MESSAGES} rounds, 0 faults" in first
    assert f"seed 5: {120 * MESSAGES} rounds, 0 faults" in more
    played = sorted(
        n for line in lines(done) for n in range(line["first"], line["first"] + line["episodes"])
    )
    assert played == list(range(120))


def test_faults_are_told_at_the_end_also_those_of_an_earlier_part(run, episodes, tmp_path):
    done = tmp_path / "done.jsonl"
    episodes |= {3, 60}
    code, output = run("--rounds", 100 * MESSAGES, "--seed", 5, "--jobs", 2, "--done", done)
    assert code == 1
    assert output.splitlines()[-1] == f"seed 5: {100 * MESSAGES} rounds, 2 faults ()"
    code, again = run("--rounds", 100 * MESSAGES, "--done", done)
    assert code == 1
    for told in (output, again):
        assert "--episode 5:3\n" in told
        assert "--episode 5:60\n" in told


def test_a_process_that_ends_by_itself_is_a_fault(run, episodes, monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz.Episode, "run", lambda _: fuzz.os._exit(1))
    code, output = run("--rounds", 200, "--jobs", 1, "--seed", 5, "--done", tmp_path / "done")
    assert code == 1
    assert "a process ended by itself" in output


def test_memory_that_grows_is_a_fault(monkeypatch, episodes):
    sizes = iter([100.0, 249.0, 251.0])
    monkeypatch.setattr(fuzz, "_resident_mib", lambda: next(sizes))
    monkeypatch.setattr(fuzz, "_memory", fuzz.Memory())
    told = [fuzz.play(5, at, 250).faults for at in range(0, 1000, 250)]
    assert told == [[], [], [], ["memory has grown from 100 to 251 MiB before episode 1000"]]


def test_a_line_of_another_program_is_named(run, tmp_path, capsys):
    done = tmp_path / "done.jsonl"
    done.write_text('{"seed": 1}\n')
    code, _ = run("--done", done)
    assert code == 2
    done.write_text("x\n")
    with pytest.raises(ValueError, match=r"done.jsonl, line 1 is no block of episodes"):
        fuzz.read_done(done, None)
