# SPDX-License-Identifier: Apache-2.0
"""Reads text files that may be packed or encoded in other ways, and names files that are no text.

Rules
    1. gzip, xz and bzip2 are recognised by their first bytes, whatever the name, and unpacked; so
       are several streams one after the other.
    2. UTF-8 with a byte-order mark, UTF-16 and UTF-32 with one become plain UTF-8. Other bytes are
       kept as they are: old logs are in many encodings.
    3. Formats that are recognised and not read (`foreign`) are named, with what to do.
    4. A file is unpacked while it is read, so that only a piece of it is held. No file becomes
       longer than `max_bytes` bytes, and xz needs at most `_XZ_MEMORY` to unpack.
"""

import bz2
import codecs
import errno
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, Self

from bridge import files

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_BZIP2: Final = b"BZh"
_XZ_MEMORY: Final = 128 * files.MIB
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
_LONGEST_MARK: Final = 4


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class PackedText:
    """A file that is unpacked while it is read.

    Attributes:
        fault: what is wrong with its end, once it has been read; None: nothing.
    """

    def __init__(self, path: str | Path, max_bytes: int) -> None:
        """Opens it.

        Args:
            path: the path of a regular file.
            max_bytes: bytes, packed and unpacked.

        Raises:
            OSError: it cannot be read.
        """
        self.fault: str | None = None
        self.remedy = "fetch the file again"
        self._max_bytes = max_bytes
        self._file = files.opened(path)
        self._pieces = filter(None, self._decoded(self._unpacked()))
        self._first = b""
        while len(self._first) < _HEAD and (piece := next(self._pieces, b"")):
            self._first += piece
        self.head = self._first[:_HEAD]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pieces(self) -> Iterator[bytes]:
        """The text in UTF-8, once, as far as it can be read."""
        yield self._first
        yield from self._pieces

    def lines(self, longest: int) -> Iterator[bytes]:
        """The lines without their ends; after a fault without the last one, which may be cut off.

        Args:
            longest: bytes of a line.

        Raises:
            OSError: a line is longer.
        """
        old_mac = b"\n" not in self._first and b"\r" in self._first
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + (piece.replace(b"\r", b"\n") if old_mac else piece)).split(b"\n")
            yield from whole
            if len(rest) > longest:
                raise OSError(errno.EFBIG, f"Has a line longer than {files.size(longest)}")
        if self.fault is None:
            yield rest

    def _raw(self) -> Iterator[bytes]:
        while piece := self._file.read(_PIECE):
            yield piece

    def _unpacked(self) -> Iterator[bytes]:
        raw = self._raw()
        first = next(raw, b"")
        for kind, magic, make in _PACKINGS:
            if first.startswith(magic):
                unpacked = self._streams(kind, first, raw, make)
                break
        else:
            unpacked = itertools.chain((first,), raw)
        count = 0
        for piece in unpacked:
            count += len(piece)
            if count > self._max_bytes:
                bound = files.size(self._max_bytes)
                self.fault = f"longer than {bound}, unpacked, which is the bound"
                self.remedy = files.HISTORY_ADVICE
                return
            yield piece

    def _streams(
        self, kind: str, first: bytes, raw: Iterator[bytes], make: Callable[[], _Unpacker]
    ) -> Iterator[bytes]:
        """Unpacks streams one after the other; zero bytes between them are padding."""
        piece = first
        while piece := piece.lstrip(b"\0") or next(raw, b""):
            if not piece.strip(b"\0"):
                continue
            unpacker = make()
            while not unpacker.eof:
                try:
                    block = unpacker.decompress(piece, _PIECE)
                    piece = _left(unpacker)
                except (lzma.LZMAError, zlib.error, OSError, ValueError) as error:
                    much = "limit" in str(error).lower()
                    what = "is damaged here"
                    if much:
                        what = f"needs more than {files.size(_XZ_MEMORY)} of memory to unpack"
                        self.remedy = "unpack it first (xz -d)"
                    self.fault = f"the {kind} stream {what}"
                    return
                yield block
                if not block and not piece and not unpacker.eof:
                    piece = next(raw, b"")
                    if not piece:
                        self.fault = f"the {kind} stream is cut off here"
                        return
            piece = unpacker.unused_data

    @staticmethod
    def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
        first = b""
        for piece in pieces:  # marks have up to four bytes
            first += piece
            if len(first) >= _LONGEST_MARK:
                break
        if first.startswith(codecs.BOM_UTF8):
            first = first[len(codecs.BOM_UTF8) :]
        for mark, encoding in _MARKS:
            if first.startswith(mark):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
                for piece in itertools.chain((first[len(mark) :],), pieces):
                    yield decoder.decode(piece).encode("utf-8", "replace")
                yield decoder.decode(b"", True).encode("utf-8", "replace")
                return
        yield first
        yield from pieces


def _left(unpacker: _Unpacker) -> bytes:
    """What zlib has not taken; others keep it."""
    return getattr(unpacker, "unconsumed_tail", b"")


def _gzip() -> Any:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


_PACKINGS: Final[tuple[tuple[str, bytes, Callable[[], Any]], ...]] = (
    ("gzip", _GZIP, _gzip),
    ("xz", _XZ, _xz),
    ("bzip2", _BZIP2, bz2.BZ2Decompressor),
)


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
