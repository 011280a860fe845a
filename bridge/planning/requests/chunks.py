# SPDX-License-Identifier: Apache-2.0
"""The language of chunks: PBS's `select` and `place`, and OpenCCS's `rset`, read and written.

    request   = ["select=" | "rset="] chunks {"," item}
    chunks    = group {"+" group}
    group     = [count ":"] resource {":" resource}  |  count
    resource  = name "=" value
    item      = "place=" place  |  licence "=" number  |  name "=" licence
    place     = word {":" word}
    word      = free | pack | scatter | excl | exclhost | exclusive | shared | group "=" name

Rules
    1. `ncpus` defaults to 1 (`cores` is the same word), counts to 1, place to `free`.
    2. Sizes (`mem`, `vmem`) have a unit: b, kb, mb, gb, tb, or k, m, g, t; 1 kb is 1024 b. They
       are rounded up to whole MiB. Slurm has no limit of virtual memory: `vmem` counts as memory;
       the larger of the two applies.
    3. `ngpus` is the generic resource `gpu`. `mpiprocs` and `ompthreads` shape the processes and
       take nothing from the node. `host` names the node.
    4. Any other name with a number is an amount of it; with a word it is the feature
       `name=word`, with `true` the feature `name`. A number written with leading zeros is a word.
    5. What follows a comma is for the whole job: `place`, or licences: `matlab=2` is two of
       `matlab`, `sw=g03` is one of `g03`.
    6. Words are read without regard to case, names and values as they stand; no blanks.

Every error is a `RequestError` at the character where it is found, and says how to correct it.

Source: OpenPBS, pbs_resources(7); Keller, JSSPP 2017, section 3 and its Example 2.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NoReturn

from bridge.errors import RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest, Place

MAX_LENGTH: Final = 4096
"""Longest request, in characters."""
MAX_GROUPS: Final = 64
"""Most groups of a request, and most resources or licences in one of its parts."""
MAX_CHUNKS: Final = 1 << 20
"""Most chunks of a job, most CPUs of a chunk, and most of anything else."""
MAX_CPUS: Final = 65_535
"""Most CPUs on a node: Slurm counts them with 16 bits."""
MAX_MEMORY_MIB: Final = 1 << 40

_MIB_B: Final = 1 << 20
_UNIT_B: Final = {
    "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30,
    "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40,
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_DIGITS = re.compile(r"[0-9]{1,16}")
_SIZE = re.compile(r"([0-9]{1,16})([A-Za-z]*)")
_ARRANGEMENTS = {a.name.lower(): a for a in Arrangement}
_OPENINGS = ("select=", "rset=")
_CPU_WORDS = ("ncpus", "cores")
_BUILT_IN = ("ncpus", "mem", "vmem", "ngpus", "mpiprocs", "ompthreads", "host")
_RESERVED = frozenset((*_BUILT_IN, *_CPU_WORDS, "place", "select", "rset"))


def parse_request(text: str, place: str = "") -> ChunkRequest:
    """Reads a request.

    Args:
        text: chunks, then job-wide items after a comma.
        place: the place, if written separately.

    Raises:
        RequestError: with the text (`text` or `place`) and the character.
    """
    for part in (text, place):
        if len(part) > MAX_LENGTH:
            raise RequestError(
                part[:40] + "...", 0, f"longer than {MAX_LENGTH} characters; ask for less"
            )
    request = _Reader(text).request()
    if not place:
        return request
    at = text.lower().find(",place=")
    if at >= 0:
        raise RequestError(text, at + 1, "the place is given twice; leave out one of them")
    begin = len("place=") if place.lower().startswith("place=") else 0
    return ChunkRequest(request.chunks, _Reader(place, begin).place_alone(), request.licences)


def format_request(request: ChunkRequest) -> str:
    """Writes a request so that `parse_request` reads it back."""
    parts = ["select=" + "+".join(_format_chunk(chunk) for chunk in request.chunks)]
    parts += [f"{name}={number}" for name, number in request.licences]
    if place := format_place(request.place):
        parts.append(f"place={place}")
    return ",".join(parts)


def format_place(place: Place) -> str:
    """Writes a place; empty for the default."""
    words = []
    if place.arrangement or place.exclusive or place.shared or place.group:
        words.append(place.arrangement.name.lower())
    if place.exclusive:
        words.append("excl")
    if place.shared:
        words.append("shared")
    if place.group:
        words.append(f"group={place.group}")
    return ":".join(words)


def _format_chunk(chunk: Chunk) -> str:
    words = [f"{chunk.count}", f"ncpus={chunk.ncpus}"]
    if chunk.mem_mib:
        whole_gib = chunk.mem_mib % 1024 == 0
        words.append(f"mem={chunk.mem_mib // 1024}gb" if whole_gib else f"mem={chunk.mem_mib}mb")
    words += [f"{'ngpus' if name == 'gpu' else name}={n}" for name, n in chunk.amounts]
    if chunk.mpiprocs:
        words.append(f"mpiprocs={chunk.mpiprocs}")
    if chunk.ompthreads:
        words.append(f"ompthreads={chunk.ompthreads}")
    words += [word if "=" in word else f"{word}=true" for word in chunk.features]
    if chunk.host:
        words.append(f"host={chunk.host}")
    return ":".join(words)


@dataclass
class _Group:
    """One group while it is read."""

    ncpus: int = 1
    mem_mib: int = 0
    mpiprocs: int = 0
    ompthreads: int = 0
    host: str = ""
    amounts: dict[str, int] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


class _Reader:
    """Reads a request from `position` on, character by character."""

    def __init__(self, text: str, position: int = 0) -> None:
        self.text, self.position = text, position

    def request(self) -> ChunkRequest:
        for opening in _OPENINGS:
            if self.text[: len(opening)].lower() == opening:
                self.position = len(opening)
        if self.position == len(self.text):
            self._fail("nothing is requested; give chunks as in 2:ncpus=4:mem=8gb")
        chunks = [self._group()]
        while self._take("+"):
            if len(chunks) == MAX_GROUPS:
                self._fail(f"more than {MAX_GROUPS} groups; join equal ones")
            chunks.append(self._group())
        place: Place | None = None
        licences: dict[str, int] = {}
        while self._take(","):
            at = self.position
            if self._word("place="):
                if place is not None:
                    self._fail("the place is given twice; leave out one of them", at)
                place = self._place()
            else:
                self._licence(licences)
        if self.position < len(self.text):
            self._unexpected("'+', ',' or the end")
        if sum(chunk.count for chunk in chunks) > MAX_CHUNKS:
            self._fail(f"more than {MAX_CHUNKS} chunks in all; ask for less", 0)
        return ChunkRequest(tuple(chunks), place or Place(), tuple(sorted(licences.items())))

    def place_alone(self) -> Place:
        place = self._place()
        if self.position < len(self.text):
            self._unexpected("':' or the end")
        return place

    # ------------------------------------------------------------------ chunks

    def _group(self) -> Chunk:
        count = 1
        if found := _DIGITS.match(self.text, self.position):
            count = self._bounded(found, 1, MAX_CHUNKS, "count of chunks")
            if not self._take(":"):
                return Chunk(count)
        group = _Group()
        self._resource(group)
        while self._take(":"):
            self._resource(group)
        return Chunk(
            count, group.ncpus, group.mem_mib, tuple(sorted(group.amounts.items())),
            group.mpiprocs, group.ompthreads, tuple(sorted(group.features)), group.host,
        )  # fmt: skip

    def _resource(self, group: _Group) -> None:
        at = self.position
        name = self._name()
        key = "ncpus" if name.lower() in _CPU_WORDS else name
        if key.lower() in _BUILT_IN:
            key = key.lower()
        if key in group.named:
            self._fail(f"'{key}' is given twice; leave out one of them", at)
        if len(group.named) == MAX_GROUPS:
            self._fail(f"more than {MAX_GROUPS} resources in a chunk; ask for less", at)
        group.named.add(key)
        if key in ("mem", "vmem"):
            group.mem_mib = max(group.mem_mib, self._size())
        elif key == "ncpus":
            group.ncpus = self._number(1, MAX_CPUS, "ncpus")
        elif key == "mpiprocs":
            group.mpiprocs = self._number(1, MAX_CPUS, key)
        elif key == "ompthreads":
            group.ompthreads = self._number(1, MAX_CPUS, key)
        elif key == "host":
            group.host = self._value("the name of a node")
        else:
            self._other(group, key, at)

    def _other(self, group: _Group, name: str, at: int) -> None:
        """Amounts and features (rule 4)."""
        name = "gpu" if name == "ngpus" else name
        value_at = self.position
        word = self._value("a number, a word or true")
        if _NUMBER.fullmatch(word):
            if name in group.amounts:
                self._fail(f"'{name}' is given twice; leave out one of them", at)
            minimum = 1 if name == "gpu" else 0
            found = _NUMBER.match(self.text, value_at)
            assert found is not None
            group.amounts[name] = self._bounded(found, minimum, MAX_CHUNKS, name)
        elif name == "gpu":
            self._fail("a number of GPUs is missing; write ngpus=2", value_at)
        elif word.lower() == "true":
            group.features.add(name)
        elif word.lower() == "false":
            self._fail(
                "only features that a node must have can be requested; leave it out or name such a "
                "feature",
                value_at,
            )
        else:
            group.features.add(f"{name}={word}")

    # job-wide items

    def _licence(self, licences: dict[str, int]) -> None:
        at = self.position
        found = _VALUE.match(self.text, self.position)
        if found is None:
            self._unexpected("place= or a licence, as in matlab=2")
        name = found.group()
        self._not_reserved(name, at)
        self.position = found.end()
        if not self._take("="):
            self._unexpected("'=' and a number of licences")
        value_at = self.position
        word = self._value("a number, or the name of a licence")
        number = 1
        if _NUMBER.fullmatch(word):
            counted = _NUMBER.match(self.text, value_at)
            assert counted is not None
            number = self._bounded(counted, 1, MAX_CHUNKS, name)
        else:
            name = word
            self._not_reserved(name, value_at)
        if name in licences:
            self._fail(f"licence '{name}' is given twice; leave out one of them", at)
        if len(licences) == MAX_GROUPS:
            self._fail(f"more than {MAX_GROUPS} licences; ask for less", at)
        licences[name] = number

    def _not_reserved(self, name: str, at: int) -> None:
        if name.lower() in _RESERVED:
            self._fail(f"'{name}' is not a licence; resources of a chunk are joined by ':'", at)

    def _place(self) -> Place:
        arrangement: Arrangement | None = None
        exclusive = shared = False
        group = ""
        while True:
            at = self.position
            word = self._name(bare=True).lower()
            if word in _ARRANGEMENTS:
                if arrangement is not None:
                    self._fail("give one of free, pack and scatter", at)
                arrangement = _ARRANGEMENTS[word]
            elif word in ("excl", "exclusive", "exclhost"):
                exclusive = True
            elif word == "shared":
                shared = True
            elif word == "group":
                if group:
                    self._fail("'group' is given twice; leave out one of them", at)
                if not self._take("="):
                    self._unexpected("'=' and the name of a feature, as in group=rack")
                group = self._value("the name of a feature")
            else:
                self._fail(
                    f"no place '{word}'; there are free, pack, scatter, excl, shared, group=...", at
                )
            if exclusive and shared:
                self._fail("excl and shared contradict each other; leave out one of them", at)
            if not self._take(":"):
                return Place(arrangement or Arrangement.FREE, exclusive, shared, group)

    # ------------------------------------------------------------------ words and numbers

    def _take(self, character: str) -> bool:
        if self.text[self.position : self.position + 1] == character:
            self.position += 1
            return True
        return False

    def _word(self, word: str) -> bool:
        if self.text[self.position : self.position + len(word)].lower() == word:
            self.position += len(word)
            return True
        return False

    def _name(self, *, bare: bool = False) -> str:
        found = _NAME.match(self.text, self.position)
        if found is None:
            self._unexpected("free, pack, scatter or excl" if bare else "a resource, as in ncpus=4")
        self.position = found.end()
        if not bare and not self._take("="):
            self._unexpected(f"'=' and a value after '{found.group()}'")
        return found.group()

    def _value(self, what: str) -> str:
        found = _VALUE.match(self.text, self.position)
        if found is None:
            self._unexpected(what)
        self.position = found.end()
        return found.group()

    def _number(self, minimum: int, maximum: int, what: str) -> int:
        found = _DIGITS.match(self.text, self.position)
        if found is None:
            self._unexpected(f"a whole number, as in {what}=4")
        number = self._bounded(found, minimum, maximum, what)
        if _VALUE.match(self.text, self.position):
            self._unexpected(f"a whole number, as in {what}={number}")
        return number

    def _bounded(self, found: re.Match[str], minimum: int, maximum: int, what: str) -> int:
        number = int(found.group())
        if not minimum <= number <= maximum:
            self._fail(f"{what} must be from {minimum} to {maximum}", found.start())
        self.position = found.end()
        return number

    def _size(self) -> int:
        found = _SIZE.match(self.text, self.position)
        if found is None:
            self._unexpected("a size, as in mem=4gb")
        unit = _UNIT_B.get(found.group(2).lower())
        if unit is None:
            problem = "no unit" if not found.group(2) else f"no unit '{found.group(2)[:16]}'"
            self._fail(f"{problem}; write kb, mb, gb or tb, as in mem=4gb", found.start(2))
        size_mib = -(-int(found.group(1)) * unit // _MIB_B)
        if not 1 <= size_mib <= MAX_MEMORY_MIB:
            self._fail("a size must be from 1mb to 1048576tb", found.start())
        self.position = found.end()
        if _VALUE.match(self.text, self.position):
            self._unexpected("':' or the end of the chunk after the size")
        return size_mib

    def _unexpected(self, wanted: str) -> NoReturn:
        rest = self.text[self.position : self.position + 1]
        found = f"'{rest}'" if rest.isprintable() and rest else "an unprintable character"
        where = "the end" if self.position >= len(self.text) else found
        self._fail(f"{wanted} is expected, not {where}")

    def _fail(self, problem: str, position: int | None = None) -> NoReturn:
        raise RequestError(self.text, self.position if position is None else position, problem)
