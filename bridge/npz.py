# SPDX-License-Identifier: Apache-2.0
"""Reads arrays from files `.npz` of others: without objects, within a bound on memory.

A packed file, and the shape in the header of an array, may state more than any memory has.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bridge.files import MemoryBudget

UNREADABLE: Final = (
    OSError, ValueError, EOFError, TypeError, SyntaxError, OverflowError, NotImplementedError,
    RuntimeError, MemoryError, KeyError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip
"""What reading a damaged file may raise."""


def read(content: bytes, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays by name.

    Args:
        max_bytes: memory that the arrays may need together, bytes.

    Raises:
        OSError: they need more.
        ValueError: an array is not as long as its header states; or another of `UNREADABLE`.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        MemoryBudget(max_bytes).take(sum(entry.file_size for entry in packed.infolist()))
        for entry in packed.infolist():
            with packed.open(entry) as stream:
                if _stated_bytes(stream) > entry.file_size:
                    raise ValueError(f"{entry.filename:.60} is shorter than its header states")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _stated_bytes(stream: Any) -> int:
    """The length of an array by its header."""
    version = npy.read_magic(stream)
    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in headers:
        raise ValueError(f"has arrays of format {version}")
    shape, _, kind = headers[version](stream)
    return math.prod(shape) * kind.itemsize
