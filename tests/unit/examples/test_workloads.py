# SPDX-License-Identifier: Apache-2.0
"""The workflows of examples/workloads: right on every number of tasks, and wrong if data is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "examples" / "workloads" / "workflow.py"
NAMES = ("blast", "montage", "readings", "synthetic")


def workflow(*words, **environment):
    outside = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        env={**outside, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_every_stage_is_right_on_every_number_of_tasks(name, cores, tmp_path):
    done = workflow("run", name, "--cores", cores, "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["right"] for line in lines)
    assert len(lines) == len({line["stage"] for line in lines}) >= 2
    assert {line["cores"] for line in lines} == {1, cores}
    assert not list(tmp_path.glob("*.address"))


def test_tasks_that_srun_started_meet(tmp_path):
    words = ["run", "readings", "record", "--cores", 2, "--folder", tmp_path]
    assert workflow(*words).returncode == 0
    words[2] = "quantiles"
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    tasks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), *map(str, words)],
            env={**os.environ, **step, "SLURM_PROCID": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [task.communicate(timeout=120)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0]
    assert json.loads(said[0])["right"]
    assert said[1] == ""


@pytest.mark.parametrize(
    ("name", "stage", "file", "change"),
    [
        ("montage", "add", "corrected-3", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ("blast", "rank", "hits.json", lambda data: data.replace(b", 59]", b", 58]")),
        ("readings", "report", "quantiles.json", lambda data: data.replace(b"[", b"[1, ")),
        ("synthetic", "compute", "numbers", lambda data: data[:8] + b"\1" + data[9:]),
    ],
)
def test_wrong_data_gives_a_wrong_result(name, stage, file, change, tmp_path):
    assert workflow("run", name, "--cores", 2, "--folder", tmp_path).returncode == 0
    path = tmp_path / file
    path.write_bytes(change(path.read_bytes()))
    done = workflow("run", name, stage, "--cores", 2, "--folder", tmp_path)
    assert done.returncode == 1
    assert not json.loads(done.stdout)["right"]


def test_slurm_gets_a_job_for_each_stage_that_depends_on_the_one_before(tmp_path):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nwc -l <{tmp_path}/asked\n')
    sbatch.chmod(0o755)
    done = workflow(
        "submit", "readings", "--cores", 8, "--size", 2, "--folder", tmp_path, "--", "--time=5",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    requested = (tmp_path / "asked").read_text().splitlines()
    assert ["--dependency" in line for line in requested] == [False, True, True, True]
    assert "--dependency=afterok:2" in requested[2]
    assert all(" -n8 " in line for line in requested)
    assert ["srun -n8 " in line for line in requested] == [False, True, True, False]
    assert all("--time=5" in line for line in requested)


def test_without_slurm_nothing_can_be_submitted(tmp_path):
    done = workflow("submit", "blast", "--folder", tmp_path, PATH="/nowhere")
    assert done.returncode == 1
    assert done.stderr == "workflow.py: sbatch: No such file or directory\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run"], "which workflow?"),
        (["run", "sieve"], "invalid choice: 'sieve'"),
        (["run", "blast", "add"], "no stage 'add'"),
        (["run", "blast", "--cores", "0"], "invalid positive value: '0'"),
        (["run", "blast", "--folder", "/nowhere"], "is not a folder"),
    ],
)
def test_what_makes_no_sense_is_said(words, problem):
    done = workflow(*words)
    assert done.returncode == 2
    assert problem in done.stderr
