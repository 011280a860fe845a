# SPDX-License-Identifier: Apache-2.0
"""Reads text files that may be packed or encoded in other ways, and names files that are no text.

Rules
    1. gzip, xz and bzip2 are recognised by their first bytes, whatever the name, and unpacked; so
       are several streams one after the other.
    2. UTF-8 with a byte-order mark, UTF-16 and UTF-32 with one become plain UTF-8. Other bytes are
       kept as they are: old logs are in many encodings.
    3. Formats that are recognised and not read (`foreign`) are named, with what to do.
    4. No file becomes longer than `most` bytes, and xz needs at most `_XZ_MEMORY` to unpack.
"""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Final, Protocol

from bridge import files

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_BZIP2: Final = b"BZh"
_XZ_MEMORY: Final = 512 * files.MIB
_PIECE: Final = 1 << 16
_HEAD: Final = 4096

_FOREIGN: Final = (
    (b"\x28\xb5\x2f\xfd", "is packed by zstd, which is not read: unpack it first (zstd -d)"),
    (b"PK\x03\x04", "is a zip archive (or a spreadsheet): unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive: unpack it first"),
    (b"\x1f\x9d", "is packed by compress (.Z): unpack it first (gzip -d)"),
    (b"SQLite format 3", "is an SQLite database"),
    (b"PAR1", "is a Parquet file"),
    (b"%PDF", "is a PDF document"),
)
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Longer ones first: the mark of UTF-32 begins with that of UTF-16."""


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def read_packed(path: str | Path, most: int) -> tuple[bytes, str | None]:
    """Reads a file and unpacks it.

    Args:
        path: of a regular file.
        most: bytes, packed and unpacked.

    Returns:
        The text in UTF-8, as far as it can be read, and what is wrong at its end, if anything.

    Raises:
        OSError: it cannot be read, or is too long.
    """
    raw = files.read_bytes(path, most)
    text, fault = raw, None
    if raw.startswith(_GZIP):
        text, fault = _gzip(raw, most)
    elif raw.startswith(_XZ):
        text, fault = _streams("xz", raw, most, _xz)
    elif raw.startswith(_BZIP2):
        text, fault = _streams("bzip2", raw, most, bz2.BZ2Decompressor)
    return _decoded(text), fault


def foreign(text: bytes) -> str | None:
    """What a file is, if its beginning shows that it is no plain text; None: it may be."""
    for magic, what in _FOREIGN:
        if text.startswith(magic):
            return what
    if text.startswith((_GZIP, _XZ, _BZIP2)):
        return "is packed twice: unpack it once"
    head = text[:_HEAD]
    if head[257:262] == b"ustar":
        return "is a tar archive: unpack it first (tar -xf)"
    if b"\0" in head:
        if head[:1] != b"\0" and head[1:16:2].strip(b"\0") == b"" and len(head) > 2:
            return (
                "is UTF-16 without a byte-order mark: convert it first (iconv -f UTF-16LE -t UTF-8)"
            )
        return "has NUL bytes: it is not a text file, or a part of it was lost"
    beginning = head.lstrip()[:16].lower()
    if beginning.startswith(b"<"):
        return "is HTML or XML: the address may have led to a page instead of the file"
    return None


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _gzip(raw: bytes, most: int) -> tuple[bytes, str | None]:
    text = bytearray()
    with gzip.open(BytesIO(raw)) as stream:
        try:
            while block := stream.read(_PIECE):
                text += block
                if len(text) > most:
                    return bytes(text), _too_long(most)
        except EOFError:
            return bytes(text), "the gzip stream is cut off here"
        except (zlib.error, gzip.BadGzipFile):
            return bytes(text), "the gzip stream is damaged here"
    return bytes(text), None


def _streams(
    kind: str, raw: bytes, most: int, make: Callable[[], _Unpacker]
) -> tuple[bytes, str | None]:
    """Unpacks streams one after the other; zero bytes between them are padding."""
    text = bytearray()
    while raw:
        unpacker, piece = make(), raw
        while not unpacker.eof:
            try:
                block = unpacker.decompress(piece, _PIECE)
            except (lzma.LZMAError, OSError, ValueError) as error:
                if "limit" in str(error).lower():
                    return bytes(text), f"the {kind} stream needs too much memory to unpack"
                return bytes(text), f"the {kind} stream is damaged here"
            piece = b""
            text += block
            if len(text) > most:
                return bytes(text), _too_long(most)
            if not block and unpacker.needs_input and not unpacker.eof:
                return bytes(text), f"the {kind} stream is cut off here"
        raw = unpacker.unused_data.lstrip(b"\0")
    return bytes(text), None


def _too_long(most: int) -> str:
    return f"longer than {files.size(most)}, unpacked"


def _decoded(text: bytes) -> bytes:
    if text.startswith(codecs.BOM_UTF8):
        return text[len(codecs.BOM_UTF8) :]
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            return text[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return text
