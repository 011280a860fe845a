# SPDX-License-Identifier: Apache-2.0
"""The double answers as a real server did (`tests/real_pbs/record_codes.py`)."""

import json
from pathlib import Path

import pytest

from tests.pbs_double import PbsDouble

ROWS = {
    row["case"]: row
    for row in json.loads((Path(__file__).parent / "recorded/codes.json").read_text())["rows"]
}


class Played:
    """The recorded cases on the double."""

    def __init__(self):
        self.pbs = PbsDouble({f"n{i}": {"ncpus": "4", "mem": "8gb"} for i in range(1, 4)})
        self.pair = self.pbs.connect(""), self.pbs.connect("")
        self.codes = {"register": self.pbs.register("default", *self.pair)}
        self.states = {}

    def run(self, case, where, job=""):
        job = job or self.pbs.submit("1:ncpus=1")
        self.codes[case] = self.pbs.run(self.pair[0], job, where)
        self.pbs.advance(2)
        self.states[case] = self.pbs.jobs[job]["job_state"]
        return job


@pytest.fixture(scope="module")
def played():
    told = Played()
    pbs, primary, codes = told.pbs, told.pair[0], told.codes
    codes["second registration"] = pbs.register("default", pbs.connect(""), pbs.connect(""))
    told.run("running job", "(n1:ncpus=1)", told.run("fits", "(n1:ncpus=1)"))
    told.run("overfull vnode", "(n1:ncpus=9)")
    told.run("more than asked", "(n2:ncpus=4)")
    told.run("unknown vnode", "(n99:ncpus=1)")
    told.run("unknown resource", "(n1:nothing=1)")
    held = pbs.submit("1:ncpus=1")
    pbs.hold(held)
    told.run("held job", "(n2:ncpus=1)", held)
    array = "50[].srv"
    pbs.jobs[array] = {**pbs.jobs[pbs.submit("1:ncpus=1")], "array": "True",
                       "array_indices_remaining": "1,2"}  # fmt: skip
    codes["array parent"] = pbs.run(primary, array, "(n2:ncpus=1)")
    codes["task of an array"] = pbs.run(primary, "50[1].srv", "(n2:ncpus=1)")
    told.states["task of an array"] = pbs.jobs["50[1].srv"]["job_state"]
    told.run("exclusive on a vnode in use", "(n1:ncpus=1)")
    told.run("exclusive", "(n3:ncpus=1)")
    pbs.vnodes["n3"] = {**pbs.vnodes["n3"], "state": "job-exclusive"}  # the double sets no states
    told.run("vnode already exclusive", "(n3:ncpus=1)")
    codes["unknown job"] = pbs.run(primary, "99999.srv", "(n1:ncpus=1)")
    waits = pbs.submit("1:ncpus=1")
    codes["release of a queued job"] = pbs.release_nodes(primary, waits, "n2")
    codes["signal to an unknown job"] = pbs.signal(primary, "99999.srv", "resume")
    codes["delete of an unknown job"] = pbs.delete(primary, "99999.srv", "")
    pbs.vnodes["n2"] = {**pbs.vnodes["n2"], "state": "offline"}
    told.run("offline vnode", "(n2:ncpus=1)")
    pbs.kill_mom("n1")
    told.run("mom down", "(n1:ncpus=1)")
    return told


@pytest.mark.parametrize("case", ROWS)
def test_the_code_is_the_recorded_one(played, case):
    assert played.codes[case] == ROWS[case]["code"]


@pytest.mark.parametrize("case", [case for case, row in ROWS.items() if "state" in row])
def test_the_job_is_left_as_recorded(played, case):
    assert played.states[case] == ROWS[case]["state"]
