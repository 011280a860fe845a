# SPDX-License-Identifier: Apache-2.0
"""Bound by the CPU, like BLAST: sequences are searched for in a database of DNA, then ranked.

A parallel stage scans the database for words of each query and extends what it finds. A sequential
one merges the hits. Each query was copied from the database with one letter changed, so where it
is best found is known.
"""

import json

from stage import Stage, noise

WORD, QUERY, PART, QUERIES = 11, 60, 60_000, 12


def _part(number):
    letters = bytes(b"ACGT"[value % 4] for value in range(256))
    return noise("dna", number, PART).translate(letters).decode()


def _parts(size):
    return list(range(4 * size))


def _origin(query, size):
    return query * 5 % len(_parts(size)), (query * 4_801 + 17) % (PART - QUERY)


def _queries(size):
    found = []
    for query in range(QUERIES):
        part, position = _origin(query, size)
        text = _part(part)[position : position + QUERY]
        middle = QUERY // 2
        found.append(text[:middle] + ("A" if text[middle] != "A" else "C") + text[middle + 1 :])
    return found


def _score(text, position, query):
    stretch = text[position : position + QUERY]
    return sum(a == b for a, b in zip(stretch, query, strict=False))


def scan(tasks, size, folder):
    """Scans this task's parts of the database."""
    words = {}
    for number, query in enumerate(_queries(size)):
        for offset in range(QUERY - WORD + 1):
            words.setdefault(query[offset : offset + WORD], []).append((number, offset))
    queries, hits = _queries(size), {}
    for part in tasks.mine(_parts(size)):
        text = _part(part)
        for position in range(PART - WORD + 1):
            for number, offset in words.get(text[position : position + WORD], ()):
                begin = position - offset
                if begin >= 0:
                    hits[number, part, begin] = _score(text, begin, queries[number])
    everybody = tasks.exchange([[*where, score] for where, score in hits.items()])
    if tasks.rank == 0:
        rows = sorted(row for rows in everybody for row in rows)
        (folder / "hits.json").write_text(json.dumps(rows))
    return len(_parts(size))


def rank(tasks, size, folder):
    """Finds the best hit of each query."""
    best = {}
    for number, part, begin, score in json.loads((folder / "hits.json").read_text()):
        best[number] = max(best.get(number, (0, 0, 0)), (score, part, begin))
    return [list(best[number]) for number in range(QUERIES)]


def expected(size):
    """Each query where it was copied from, with one letter wrong."""
    return [[QUERY - 1, *_origin(query, size)] for query in range(QUERIES)]


STAGES = (
    Stage("scan", scan, parallel=True, expected=lambda size: len(_parts(size))),
    Stage("rank", rank, parallel=False, expected=expected),
)
