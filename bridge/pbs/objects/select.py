# SPDX-License-Identifier: Apache-2.0
"""Reads `select` and `place` as the server holds them (`schedselect`, `Resource_List.place`).

Rules
    1. `2:ncpus=4:mem=8gb+1:host=n1`: groups joined by `+`, resources by `:`. A value in quotes may
       contain both.
    2. A job without `schedselect` (one that was never routed) has its select, or one chunk.
    3. place: free, pack, scatter, vscatter; excl, exclhost, shared; group=RESOURCE; in any order.

Source: OpenPBS 23.06, qsub(1B), pbs_resources(7).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from bridge.errors import BadRequest
from bridge.pbs.tables import Attributes, amounts, text

MAX_LENGTH = 1 << 16
MAX_GROUPS = 1024
MAX_CHUNKS = 1 << 20


class Arrange(Enum):
    """How the chunks of a job are distributed."""

    FREE = "free"
    PACK = "pack"
    SCATTER = "scatter"
    VSCATTER = "vscatter"


class PlaceSharing(Enum):
    """Whether the job takes its vnodes alone."""

    UNSTATED = ""
    SHARED = "shared"
    EXCLUSIVE = "excl"
    HOST = "exclhost"


@dataclass(frozen=True)
class PbsPlace:
    arrange: Arrange = Arrange.FREE
    share: PlaceSharing = PlaceSharing.UNSTATED
    group: str = ""


@dataclass(frozen=True)
class PbsChunk:
    """`count` equal chunks; resources as texts."""

    count: int
    resources: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def parse_select(select: str) -> tuple[PbsChunk, ...]:
    """Reads a select statement.

    Raises:
        BadRequest: it is none.
    """
    if len(select) > MAX_LENGTH:
        raise BadRequest(f"select is longer than {MAX_LENGTH} characters")
    groups = _split(select.strip().removeprefix("select="), "+")
    if len(groups) > MAX_GROUPS:
        raise BadRequest(f"select has more than {MAX_GROUPS} groups of chunks")
    chunks = tuple(_chunk(group) for group in groups)
    if sum(chunk.count for chunk in chunks) > MAX_CHUNKS:
        raise BadRequest(f"select has more than {MAX_CHUNKS} chunks")
    return chunks


def _chunk(group: str) -> PbsChunk:
    words = _split(group, ":")
    count = 1
    if words[0].isascii() and words[0].isdigit():
        if len(words[0]) > 9 or int(words[0]) < 1:
            raise BadRequest(f"select: '{words[0][:20]}' is not a number of chunks")
        count = int(words.pop(0))
    resources: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise BadRequest(f"select: '{word[:40]}' is not RESOURCE=VALUE")
        if name in resources:
            raise BadRequest(f"select: {name[:40]} is given twice in a chunk")
        resources[name] = value.strip("\"'")
    return PbsChunk(count, resources)


def _split(whole: str, at: str) -> list[str]:
    parts, quote = [""], ""
    for letter in whole:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        if letter == at and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if quote:
        raise BadRequest("select: a quotation mark is not closed")
    if not all(parts):
        raise BadRequest(f"select: something is missing beside '{at}'")
    return parts


@lru_cache(maxsize=256)
def parse_place(place: str) -> PbsPlace:
    """Reads a place statement.

    Raises:
        BadRequest: it is none.
    """
    arrange, share, group = Arrange.FREE, PlaceSharing.UNSTATED, ""
    for word in filter(None, place.removeprefix("place=").split(":")):
        if word in _ARRANGE:
            arrange = _ARRANGE[word]
        elif word in _SHARE:
            share = _SHARE[word]
        elif word.startswith("group=") and len(word) > len("group="):
            group = word.partition("=")[2]
        else:
            raise BadRequest(f"place: '{word[:40]}' is not understood")
    return PbsPlace(arrange, share, group)


_ARRANGE = {each.value: each for each in Arrange}
_SHARE = {each.value: each for each in PlaceSharing if each.value}


def job_chunks(job: Attributes) -> tuple[PbsChunk, ...]:
    """Returns the chunks of a job or reservation (rule 2).

    Raises:
        BadRequest: its select cannot be read.
    """
    listed = amounts(job, "Resource_List")
    select = text(job, "schedselect") or listed.get("select", "")
    if select:
        return parse_select(select)
    own: dict[str, str] = {n: listed[n] for n in ("ncpus", "mem", "ngpus") if n in listed}
    return (PbsChunk(1, own or {"ncpus": "1"}),)


def job_place(job: Attributes) -> PbsPlace:
    """Returns the place of a job or reservation.

    Raises:
        BadRequest: it cannot be read.
    """
    return parse_place(amounts(job, "Resource_List").get("place", ""))
