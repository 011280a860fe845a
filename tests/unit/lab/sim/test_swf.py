# SPDX-License-Identifier: Apache-2.0
import gzip
from importlib.resources import files

import numpy as np
import pytest

from bridge.errors import TraceError
from bridge.lab.sim.workloads.swf import Field, read_swf, write_swf

GOOD = "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1"
HEADER = "; Computer: Test\n; MaxProcs: 64 (half of it)\n;\n"
EXCERPT = files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz")


def trace(tmp_path, text, name="t.swf"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def with_field(number, word):
    words = GOOD.split()
    words[number - 1] = word
    return " ".join(words)


def test_all_fields_and_directives_are_read(tmp_path):
    read = read_swf(trace(tmp_path, HEADER + GOOD + "\n"))
    assert read.columns.tolist() == [[float(word) for word in GOOD.split()]]
    assert read.directive("computer") == "Test"
    assert read.whole_number("MaxProcs") == 64
    assert read.whole_number("MaxNodes") is None
    assert read.dropped == ()


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n\n  {GOOD}\t\n\n",
        f"{GOOD}\r\n",
        with_field(6, "142.00"),
        f"{GOOD} {{1,2}} q_1d x\n{GOOD} {{3}} q y",
    ],
    ids=[
        "no newline at the end",
        "blank lines",
        "CRLF",
        "average CPU time",
        "extension columns",
    ],
)
def test_what_archives_really_contain_is_read(tmp_path, text):
    assert len(read_swf(trace(tmp_path, HEADER + text)).columns) >= 1


def test_line_ends_of_old_macs_are_read(tmp_path):
    read = read_swf(trace(tmp_path, f"{HEADER}{GOOD}\n".replace("\n", "\r")))
    assert (len(read.columns), read.whole_number("MaxProcs")) == (1, 64)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (" ".join(GOOD.split()[:16]), "16 fields instead of 18: the line is cut off"),
        (GOOD + " " + GOOD, "36 fields instead of 18: two lines"),
        (with_field(4, "6o"), r"field 4 \(runtime_s\) is '6o', not a number"),
        (with_field(18, "-"), r"field 18 \(think_time_s\) is '-', not a number"),
        (with_field(4, "nan"), "not a possible value"),
        (with_field(4, "1_0"), "not a number"),
        (with_field(9, "1e300"), "not a possible value"),
        (with_field(4, "274877906945"), "not a possible value"),
        (with_field(2, "274877906945"), "not a possible value"),
        (with_field(4, "1e999"), "not a possible value"),
        (with_field(5, "2.5"), r"field 5 \(allocated_processors\) is '2.5', not a whole number"),
        (with_field(2, "-7"), "before the trace begins"),
    ],
)
def test_a_bad_line_is_refused_by_number_and_dropped_leniently(tmp_path, line, says):
    path = trace(tmp_path, f"{HEADER}{GOOD}\n{line}\n{GOOD}\n")
    with pytest.raises(TraceError, match=f"t.swf:5: .*{says}.*--lenient"):
        read_swf(path)
    lenient = read_swf(path, lenient=True)
    assert len(lenient.columns) == 2
    assert len(lenient.dropped) == 1
    assert ":5: " in lenient.dropped[0]


def test_a_first_line_cut_off_does_not_set_the_width(tmp_path):
    path = trace(tmp_path, f"1 2 3\n{GOOD}\n")
    with pytest.raises(TraceError, match=":1: 3 fields"):
        read_swf(path)
    assert len(read_swf(path, lenient=True).columns) == 1


def test_a_truncated_gzip_is_refused_where_it_stops(tmp_path):
    whole = gzip.compress((HEADER + f"{GOOD}\n" * 5000).encode())
    path = trace(tmp_path, whole[: len(whole) // 2], "t.swf.gz")
    with pytest.raises(TraceError, match=r"t\.swf\.gz:\d+: the gzip stream is cut off here"):
        read_swf(path)
    lenient = read_swf(path, lenient=True)
    assert 0 < len(lenient.columns) < 5000
    assert len(lenient.dropped) <= 1


def test_a_damaged_gzip_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    text = "".join(with_field(2, str(n)) + "\n" for n in rng.integers(0, 10**9, 5000))
    raw = bytearray(gzip.compress(text.encode()))
    raw[len(raw) // 2 : len(raw) // 2 + 64] = bytes(64)
    with pytest.raises(TraceError, match="the gzip stream is damaged here"):
        read_swf(trace(tmp_path, bytes(raw)))


@pytest.mark.parametrize("text", ["", HEADER, "\x00\x01\x02"], ids=["empty", "header", "binary"])
def test_what_is_no_trace_is_refused(tmp_path, text):
    with pytest.raises(TraceError):
        read_swf(trace(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_swf(tmp_path / "none.swf")


@pytest.mark.parametrize("name", ["copy.swf", "copy.swf.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    read = read_swf(EXCERPT)
    write_swf(tmp_path / name, read.header, read.columns)
    again = read_swf(tmp_path / name)
    assert np.array_equal(again.columns, read.columns)
    assert again.header == read.header


def test_a_header_in_another_encoding_can_be_shown_and_is_kept(tmp_path):
    raw = "; Computer: Größe\n".encode("latin-1") + GOOD.encode() + b"\n"
    read = read_swf(trace(tmp_path, raw))
    assert read.directive("Computer").encode() == "Gr\ufffd\ufffde".encode()
    write_swf(tmp_path / "copy.swf", read.header, read.columns)
    assert (tmp_path / "copy.swf").read_bytes().startswith(raw[:18])


def test_the_bundled_excerpt_names_its_source():
    read = read_swf(EXCERPT)
    assert len(read.columns) == 1500
    assert read.directive("Acknowledge") == "Lars Malinowsky"
    assert np.all(np.diff(read.columns[:, Field.SUBMIT_S]) >= 0)


def test_fields_beyond_the_18th_are_kept_as_text(tmp_path):
    read = read_swf(trace(tmp_path, f"{GOOD} {{1,2}} q_1d 1:ppn=2\n{GOOD} {{3}} q_2h 4\n"))
    assert read.text(19) == ["{1,2}", "{3}"]
    assert read.text(21) == ["1:ppn=2", "4"]
    for number in (18, 22):
        with pytest.raises(TraceError, match=f"has 21 fields, no field {number}"):
            read.text(number)


def test_a_dropped_line_takes_its_text_with_it(tmp_path):
    text = f"{GOOD} a\n{with_field(4, 'x')} b\n{GOOD} c\n"
    assert read_swf(trace(tmp_path, text), lenient=True).text(19) == ["a", "c"]


def test_a_trace_of_18_fields_has_no_more(tmp_path):
    read = read_swf(trace(tmp_path, GOOD))
    assert read.extension == ()
    with pytest.raises(TraceError, match="has 18 fields"):
        read.text(19)
