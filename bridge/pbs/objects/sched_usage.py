# SPDX-License-Identifier: Apache-2.0
"""Reads the file `usage` that pbs_sched keeps the usage of fair share in.

Format (version 2, in the byte order and alignment of the machine): a tag of 9 bytes, the version as
a double, when usage decayed last as a 64-bit integer in Unix seconds; then for each entity that has
used anything a name of 50 bytes and its usage as a double, which begins at 1. Version 1, of before
2000, has no tag, and is not read.

Source: files that pbs_sched of OpenPBS 23.06.06 wrote; its headers data_types.h and config.h.
"""

import math
import struct

from bridge.errors import BadRequest
from bridge.pbs.objects.fair_share import MAX, MAX_MEMBERS, MIN

_TAG, _VERSION = b"PBS_MAG!", 2
_HEAD, _ENTITY = struct.Struct("@9sd"), struct.Struct("@50sd")
_DECAYED = struct.Struct("@q")
MAX_B = _HEAD.size + _DECAYED.size + MAX_MEMBERS * _ENTITY.size


def read_sched_usage(content: bytes) -> tuple[dict[str, float], int]:
    """Returns the usage of each entity, and when it decayed last, Unix seconds; 0: never.

    Raises:
        BadRequest: it is of another version, is cut off, or holds impossible values.
    """
    begin = _HEAD.size + _DECAYED.size
    if len(content) < begin or not content.startswith(_TAG):
        raise BadRequest("is not of version 2")
    _, version = _HEAD.unpack_from(content)
    (decayed_s,) = _DECAYED.unpack_from(content, _HEAD.size)
    if version != _VERSION or not 0 <= decayed_s < 1 << 40:
        raise BadRequest("is not of version 2")
    if (len(content) - begin) % _ENTITY.size or len(content) > MAX_B:
        raise BadRequest("is cut off, or has too many entities")
    usage = {}
    for name, used in _ENTITY.iter_unpack(content[begin:]):
        entity = name.partition(b"\0")[0].decode("utf-8", "replace")
        if not entity or not math.isfinite(used) or not 0 <= used <= MAX:
            raise BadRequest(f"has an impossible usage of '{entity}'")
        usage[entity] = max(used - MIN, 0.0)
    return usage, decayed_s
