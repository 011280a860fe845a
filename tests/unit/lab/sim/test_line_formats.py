# SPDX-License-Identifier: Apache-2.0
"""Names that others choose add no lines to formats whose records are lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.lab.experiments.page.table import _shown
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import JobRecord, SiteWorkload
from bridge.lab.sim.workloads.swf import read_swf, write_swf
from bridge.line_text import on_one_line

ENDS = (
    "\n",
    "\r",
    "\r\n",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "\x00",
    "\x1b[2J",
    "\ud800",
)
JOB = "999 0 0 60 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_partition_or_a_site_adds_no_job_to_a_trace(tmp_path, end, suffix):
    jobs = [
        JobRecord(str(n), n, user=user, name=f"a{end}{JOB}", partitions=(f"p{end}{JOB}", "q"))
        for n, user in enumerate(("ann", "bob"), 1)
    ]
    about = {f"key{end}{JOB}": f"text{end}{JOB}"}
    trace = as_swf(SiteWorkload(f"site{end}{JOB}", jobs, processors=4, about=about))
    path = tmp_path / f"t.swf{suffix}"
    write_swf(path, trace.header, trace.columns)
    read = read_swf(path)
    assert np.array_equal(read.columns, trace.columns)
    assert len(read.header) == len(trace.header)


@given(st.text())
def test_a_text_is_one_line_and_what_was_one_stays(text):
    line = on_one_line(text)
    assert len(line.splitlines()) <= 1
    assert on_one_line(line) == line
    if text.isprintable():
        assert line == text


def test_cells_of_tables_of_experiments_are_on_one_line():
    assert _shown("a\nb,c") == "a\\nb,c"
    assert _shown(1.5) == 1.5
