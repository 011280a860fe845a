# SPDX-License-Identifier: Apache-2.0
"""Traces in other packings and encodings are read, or named for what they are."""

import bz2
import codecs
import gzip
import lzma

import pytest

from bridge.errors import TraceError
from bridge.lab.sim.workloads import packed_text, swf
from bridge.lab.sim.workloads.swf import read_swf

GOOD = "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1"
TEXT = f"; MaxProcs: 8\n# from the site\n{GOOD}\n".encode()
MANY = TEXT + f"{GOOD}\n".encode() * 20_000


def a_trace(tmp_path, raw):
    path = tmp_path / "t.swf"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    "raw",
    [
        codecs.BOM_UTF8 + TEXT,
        codecs.BOM_UTF16_LE + TEXT.decode().encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.decode().encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.decode().encode("utf-32-le"),
        TEXT.replace(b"\n", b"\r\n"),
        gzip.compress(TEXT[:20]) + gzip.compress(TEXT[20:]),
        lzma.compress(TEXT),
        lzma.compress(TEXT[:20]) + bytes(8) + lzma.compress(TEXT[20:]),
        bz2.compress(TEXT),
        bz2.compress(codecs.BOM_UTF8 + TEXT),
    ],
    ids=[
        "BOM", "UTF-16LE", "UTF-16BE", "UTF-32", "CRLF", "two gzip", "xz", "two xz, padded",
        "bzip2", "bzip2 with BOM",
    ],
)  # fmt: skip
def test_packed_and_encoded_traces_are_read(tmp_path, raw):
    read = read_swf(a_trace(tmp_path, raw))
    assert read.columns.tolist() == [[float(word) for word in GOOD.split()]]
    assert read.whole_number("MaxProcs") == 8
    assert "from the site" in read.header


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (lzma.compress(MANY)[:-40], "the xz stream is cut off here"),
        (bz2.compress(MANY)[:-40], "the bzip2 stream is cut off here"),
        (lzma.compress(MANY)[:-8] + b"garbage!", "the xz stream is damaged here"),
        (lzma.compress(TEXT) + b"garbage!" * 9, "the xz stream is damaged here"),
        (b"\xfd7zXZ\x00", "cut off"),
        (gzip.compress(gzip.compress(TEXT)), "is packed twice"),
        (b"\x28\xb5\x2f\xfd1234", "zstd"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x00" * 600 + TEXT, "has NUL bytes"),
        (TEXT.decode().encode("utf-16-le"), "UTF-16 without a byte-order mark"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b'{"jobs": []}', "JSON.*schedbridge lab import"),
        (b"JobID|User|Start|End\n1|a|b|c\n", "schedbridge lab import.*parsable2"),
        (GOOD.replace(" ", ",").encode(), "separated by ','.*CSV"),
        (b"job;submit;start;end\n", "separated by ';'"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path, raw, says):
    with pytest.raises(TraceError, match=says):
        read_swf(a_trace(tmp_path, raw))


def test_a_cut_off_stream_is_read_leniently_up_to_there(tmp_path):
    rows = b"".join(f"{GOOD}\n".replace(" 60 ", f" {n} ").encode() for n in range(1, 9000))
    for packed in (lzma.compress(rows), bz2.compress(rows, 1)):
        read = read_swf(a_trace(tmp_path, packed[: len(packed) * 2 // 3]), lenient=True)
        assert 0 < len(read.columns) < 8999


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(swf, "history_bytes", lambda: 100_000)
    for pack in (gzip.compress, lzma.compress, bz2.compress):
        with pytest.raises(TraceError, match="longer than 100000 bytes, unpacked") as error:
            read_swf(a_trace(tmp_path, pack(MANY)))
        assert "split it into shorter spans of time" in str(error.value)
        assert "fetch the file again" not in str(error.value)
    with pytest.raises(TraceError, match="cut off here: fetch the file again"):
        read_swf(a_trace(tmp_path, gzip.compress(TEXT)[:-20]))


def test_xz_that_wants_too_much_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_text, "_XZ_MEMORY", 1 << 20)
    with pytest.raises(
        TraceError, match=r"needs more than 1 MiB of memory to unpack: unpack it first \(xz -d\)"
    ):
        read_swf(a_trace(tmp_path, lzma.compress(TEXT, preset=9)))
