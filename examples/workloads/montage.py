# SPDX-License-Identifier: Apache-2.0
"""Bound by input and output, like Montage: tiles of an image are projected, matched, and joined.

Two parallel stages read and write tiles, and wait for the disk after each one. Two sequential
stages read what these wrote. The mosaic's checksum is known beforehand.
"""

import os
import zlib

from stage import Stage, noise

TILE = 1 << 20  # bytes


def _tiles(size):
    return list(range(8 * size))


def _level(number):
    return number * 7 % 31


def _write(path, data):
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _read(path):
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.read()


def _shifted(data, by):
    return data.translate(bytes((value + by) % 256 for value in range(256)))


def project(tasks, size, folder):
    """Makes the tiles, each at a brightness of its own."""
    for number in tasks.mine(_tiles(size)):
        _write(folder / f"tile-{number}", _shifted(noise("sky", number, TILE), _level(number)))
    return len(_tiles(size))


def match(tasks, size, folder):
    """Finds each tile's brightness by its first bytes, tile by tile."""
    lines = []
    for number in _tiles(size):
        first = _read(folder / f"tile-{number}")[0]
        lines.append(f"{number} {(first - noise('sky', number, 1)[0]) % 256}\n")
    (folder / "levels").write_text("".join(lines))
    return len(lines)


def correct(tasks, size, folder):
    """Takes each tile's brightness off."""
    pairs = (line.split() for line in (folder / "levels").read_text().splitlines())
    levels = {int(number): int(level) for number, level in pairs}
    for number in tasks.mine(_tiles(size)):
        data = _read(folder / f"tile-{number}")
        _write(folder / f"corrected-{number}", _shifted(data, -levels[number]))
    return len(levels)


def add(tasks, size, folder):
    """Joins the tiles to a mosaic, and gives its checksum."""
    checksum = 0
    with (folder / "mosaic").open("wb") as mosaic:
        for number in _tiles(size):
            data = _read(folder / f"corrected-{number}")
            checksum = zlib.crc32(data, checksum)
            mosaic.write(data)
        mosaic.flush()
        os.fsync(mosaic.fileno())
    return checksum


def expected(size):
    """The checksum of the mosaic, without files."""
    checksum = 0
    for number in _tiles(size):
        checksum = zlib.crc32(noise("sky", number, TILE), checksum)
    return checksum


STAGES = (
    Stage("project", project, parallel=True, expected=lambda size: len(_tiles(size))),
    Stage("match", match, parallel=False, expected=lambda size: len(_tiles(size))),
    Stage("correct", correct, parallel=True, expected=lambda size: len(_tiles(size))),
    Stage("add", add, parallel=False, expected=expected),
)
