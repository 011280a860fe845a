# SPDX-License-Identifier: Apache-2.0
"""A long run: whatever an episode does, it is named, and the others are played."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import long_run
from tests.fuzz import __main__ as fuzz
from tests.long_run import Outcome
from tests.mutants import running
from tests.simulation.whole import __main__ as simulation

ROOT = Path(__file__).parents[2]
FIRST, RUNS = 100, 12


def do_nothing():
    """As most episodes."""


def raises():
    raise RuntimeError("first line\nsecond line")


def leaves():
    sys.exit("leaves")


def exits():
    os._exit(3)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def hangs():
    threading.Event().wait()


@pytest.fixture
def run(capsys):
    """Plays episodes, some of which do what is given by seed; exit code and output."""

    def ended(*words, **deeds):
        doing = {int(seed[1:]): deed for seed, deed in deeds.items()}

        def play(seed):
            deed = doing.get(seed, do_nothing)
            if isinstance(deed, list):
                return Outcome(seed, deed)
            deed()
            return Outcome(seed, more={"counts": {"messages": 2}})

        given = long_run.parser("tests.it", "", RUNS).parse_args(list(map(str, words)))
        code = long_run.run(play, given, "python -m tests.it --strict", fuzz.summary)
        return code, capsys.readouterr().out

    return ended


def named(output):
    """The broken seeds, and what broke them; each is followed by how to repeat it."""
    lines = output.splitlines()
    found = {}
    for line, following in itertools.pairwise(lines):
        if line.startswith("seed "):
            seed, _, what = line.removeprefix("seed ").partition(" is broken: ")
            assert following == f"    again: python -m tests.it --strict --seed {seed}"
            assert int(seed) not in found
            found[int(seed)] = what
    return found


def kept(path):
    """The outcomes in a file, by seed, the latest ones."""
    entries = map(json.loads, path.read_text().splitlines())
    return {entry["seed"]: entry for entry in entries if "seed" in entry}


def test_two_broken_episodes_and_all_others(run, tmp_path):
    done = tmp_path / "folder" / "done"
    rules = ["order: 2 before 1", "order: 4 before 3"]
    code, output = run("--first", FIRST, "--done", done, _103=rules, _110=["legal: no"])
    assert code == 1
    assert named(output) == {103: f"{rules[0]} (and 1 more)", 110: "legal: no"}
    assert output.splitlines()[-1] == "12 runs from seed 100, 2 broken: 103, 110 (20 messages)"
    assert kept(done)[103] == {"seed": 103, "broken": rules}
    assert kept(done)[104] == {"seed": 104, "broken": [], "counts": {"messages": 2}}
    assert sorted(kept(done)) == list(range(FIRST, FIRST + RUNS))


@pytest.mark.parametrize("jobs", [1, 2, 20])
def test_whatever_an_episode_does_stops_no_other(run, tmp_path, jobs):
    done = tmp_path / "done"
    words = "--first", FIRST, "--jobs", jobs, "--done", done
    code, output = run(*words, _100=killed, _101=raises, _104=leaves, _105=exits, _111=killed)
    assert code == 1
    assert named(output) == {
        100: "process ended: SIGKILL", 101: "raised RuntimeError: first line",
        104: "raised SystemExit: leaves", 105: "process ended: exit code 3",
        111: "process ended: SIGKILL",
    }  # fmt: skip
    assert "12 runs from seed 100, 5 broken: 100, 101, 104, 105, 111" in output
    assert sorted(kept(done)) == list(range(FIRST, FIRST + RUNS))
    assert "in raises\n" in kept(done)[101]["broken"][0]


def test_an_episode_that_hangs_ends(run, monkeypatch):
    monkeypatch.setattr(long_run, "HANGS_S", 1)
    code, output = run("--first", FIRST, _102=hangs, _103=hangs)
    assert code == 1
    assert named(output) == dict.fromkeys((102, 103), "process ended: exit code 1")


def test_a_run_that_continues_names_what_is_broken_and_plays_what_was_killed(run, tmp_path):
    done = tmp_path / "done"
    run("--first", FIRST, "--runs", 6, "--done", done, _100=killed, _103=["rule: no"], _104=raises)
    code, output = run("--done", done, _104=killed, _110=["rule: no"])
    assert code == 1
    assert "12 runs from seed 100, 7 to do" in output  # six others, and 100
    assert named(output) == {
        100: "process ended: SIGKILL", 103: "rule: no", 104: "raised RuntimeError: first line",
        110: "rule: no",
    }  # fmt: skip
    assert output.splitlines()[-1] == (
        "12 runs from seed 100, 3 broken: 103, 104, 110 (18 messages)"
    )
    assert kept(done)[100]["broken"] == []


def test_a_run_that_continues_without_its_first_episode_still_plays_it(run, tmp_path):
    done = tmp_path / "done"
    run("--first", FIRST, "--done", done)
    lines = done.read_text().splitlines(keepends=True)
    done.write_text("".join(line for line in lines if '"seed": 100,' not in line))
    assert run("--done", done)[1].startswith("12 runs from seed 100, 1 to do\n")


def test_the_processes_of_a_run_that_is_killed_end(no_hang):
    """Their output ends when the last of them does."""
    program = """
import os, signal
from tests import long_run

def play(seed):
    if seed == 3:
        os.kill(os.getppid(), signal.SIGKILL)
    return long_run.Outcome(seed)

list(long_run.played(play, range(20), jobs=4))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, check=False
    )
    assert ran.returncode == -signal.SIGKILL


def test_half_a_line_at_the_end_is_played_again(run, tmp_path):
    done = tmp_path / "done"
    run("--first", FIRST, "--done", done)
    whole = kept(done)
    done.write_bytes(done.read_bytes()[:-9])
    code, output = run("--done", done)
    assert code == 0
    assert output.startswith("12 runs from seed 100, 1 to do\n")
    assert kept(done) == whole


def test_a_file_of_outcomes_alone_continues(run, tmp_path):
    """As simulation-long wrote them: from the lowest seed on."""
    done = tmp_path / "done"
    done.write_text(
        '{"seed": 101, "broken": ["rule: no"], "digest": "d", "s": 1.39}\n'
        '{"seed": 100, "broken": [], "digest": "e", "s": 2.94}\n'
    )
    code, output = run("--done", done)
    assert code == 1
    assert "12 runs from seed 100, 10 to do" in output
    assert named(output) == {101: "rule: no"}


@pytest.mark.parametrize(
    "text", ["x", "x\n", "3\n", '{"seed": 1}\n', '{"seed": "1", "broken": []}\n', '{"se\n{}\n']
)
def test_another_file_is_named_and_not_touched(run, tmp_path, capsys, text):
    done = tmp_path / "done"
    done.write_text(text)
    code, _ = run("--done", done)
    assert code == 2
    assert done.read_text() == text


def test_a_line_of_another_program_is_named(tmp_path, capsys):
    done = tmp_path / "done"
    done.write_text('{"first": 7}\nx\n')
    given = long_run.parser("tests.it", "", RUNS).parse_args(["--done", str(done)])
    assert long_run.run(Outcome, given, "python -m tests.it --strict") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"python -m tests.it: {done}, line 2 is not the outcome of an episode: ")


def test_the_first_broken_episode_can_end_the_run(run, tmp_path):
    code, output = run("--first", FIRST, "--jobs", 1, "--stop", _101=["rule: no"], _103=raises)
    assert code == 1
    assert named(output) == {101: "rule: no"}
    assert "2 runs from seed 100, 1 broken: 101" in output


def test_the_rule_that_a_planted_fault_breaks_is_found(run):
    _, output = run("--first", FIRST, _101=["sound: it is not", "lost: a job"])
    assert running._first_failure(output) == "rule sound"


@pytest.mark.parametrize("words", [["--runs", "0"], ["--jobs", "0"], ["--runs", "x"]])
def test_options_that_make_no_sense_are_refused(words):
    with pytest.raises(SystemExit, match="2"):
        long_run.parser("tests.it", "", RUNS).parse_args(words)


def test_memory_that_grows_is_told_each_time_it_has(monkeypatch):
    sizes = iter([100.0, 249.0, 251.0, 400.0, 402.0])
    monkeypatch.setattr(long_run, "resident_mib", lambda: next(sizes))
    memory = long_run.Memory()
    faults = {number: fault for number in range(1, 701) if (fault := memory.fault())}
    assert faults == {
        600: "memory grew: from 100 to 251 MiB in one process",
        700: "memory grew: from 251 to 402 MiB in one process",
    }


@pytest.mark.parametrize("program", [fuzz, simulation])
def test_programs_name_what_an_episode_raises(monkeypatch, capsys, program):
    """Also what is no broken rule of the fuzzer."""
    monkeypatch.setattr(fuzz, "Episode", lambda seed: raises())
    monkeypatch.setattr(simulation, "draw", lambda seed: raises())
    monkeypatch.setattr("sys.argv", ["it", "--first", "7", "--runs", "2"])
    assert program.main() == 1
    told = capsys.readouterr().out
    for seed in (7, 8):
        assert f"seed {seed} is broken: raised RuntimeError: first line\n" in told
        assert f"    again: python -m {program.MODULE} --seed {seed}\n" in told
