# SPDX-License-Identifier: Apache-2.0
"""The language of chunks: the paper's examples, errors that point, reading back what is written."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest, Place
from bridge.planning.requests.chunks import (
    MAX_CPUS,
    MAX_GROUPS,
    MAX_LENGTH,
    format_request,
    parse_request,
)

GIB = 1024


def test_paper_example_2_first() -> None:
    """Keller, JSSPP 2017, Example 2: 8 chunks with an amount the site made up."""
    assert parse_request("rset=8:ncpus=2:mem=10g:rack=8") == ChunkRequest(
        (Chunk(8, 2, 10 * GIB, amounts=(("rack", 8),)),)
    )


def test_paper_example_2_second() -> None:
    """Two kinds of chunks, each with a word as a resource."""
    assert parse_request("rset=ncpus=27:vmem=20g:arch=linux+4:acc=fpga") == ChunkRequest(
        (Chunk(1, 27, 20 * GIB, features=("arch=linux",)), Chunk(4, 1, features=("acc=fpga",)))
    )


def test_paper_example_2_third() -> None:
    """Two kinds, a job-wide licence, one chunk per node, nodes not shared."""
    assert parse_request(
        "rset=5:ncpus=16:mem=12g:net=IB+ncpus=1:mem=4g,sw=g03,place=scatter:excl"
    ) == ChunkRequest(
        (Chunk(5, 16, 12 * GIB, features=("net=IB",)), Chunk(1, 1, 4 * GIB)),
        Place(Arrangement.SCATTER, exclusive=True),
        (("g03", 1),),
    )


def test_paper_jrs_sums_the_chunks() -> None:
    """Section 4.1: `8:ncpus=2:mem=10g` makes `ncpus=16:mem=80g` in all."""
    request = parse_request("8:ncpus=2:mem=10g")
    assert request.n_cpus == 16
    assert sum(kind.count * kind.mem_mib for kind in request.kinds) == 80 * GIB


def test_pbs_select_and_place() -> None:
    assert parse_request(
        "select=2:ncpus=4:mem=10gb:ngpus=1+1:ncpus=1", "place=pack:excl:group=rack"
    ) == ChunkRequest(
        (Chunk(2, 4, 10 * GIB, amounts=(("gpu", 1),)), Chunk(1, 1)),
        Place(Arrangement.PACK, exclusive=True, group="rack"),
    )


def test_every_built_in_resource() -> None:
    text = "3:ncpus=8:mem=512mb:vmem=1gb:ngpus=2:mpiprocs=4:ompthreads=2:host=n7:arch=arm:nvme=true"
    assert parse_request(text).chunks == (
        Chunk(3, 8, 1024, (("gpu", 2),), 4, 2, ("arch=arm", "nvme"), "n7"),
    )


@pytest.mark.parametrize(
    ("size", "mib"),
    [("1b", 1), ("1048577b", 2), ("1kb", 1), ("2048k", 2), ("7m", 7), ("7mb", 7), ("7MB", 7),
     ("2g", 2048), ("2GB", 2048), ("1t", 1 << 20), ("3tb", 3 << 20)],
)  # fmt: skip
def test_sizes(size: str, mib: int) -> None:
    assert parse_request(f"mem={size}").chunks[0].mem_mib == mib


def test_chunks_that_ask_alike_are_one_kind() -> None:
    request = parse_request("2:ncpus=2+ncpus=1+3:ncpus=2")
    assert request.kinds == (Chunk(5, 2), Chunk(1, 1))
    assert (request.n_chunks, request.n_cpus) == (6, 11)


def test_an_error_points_at_the_character() -> None:
    with pytest.raises(RequestError) as refused:
        parse_request("2:ncpus=4:mem=10+ncpus=1")
    assert str(refused.value) == (
        "no unit; write kb, mb, gb or tb, as in mem=4gb at character 17 of "
        "'2:ncpus=4:mem=10+ncpus=1'"
    )


@pytest.mark.parametrize(
    "text",
    ["1:" * 4000, "+".join(["ncpus=1"] * (MAX_GROUPS + 1)), "ncpus=1," + ",".join(
        f"l{n}=1" for n in range(MAX_GROUPS + 1)),
     ":".join(f"r{n}=1" for n in range(MAX_GROUPS + 1)), f"ncpus={MAX_CPUS + 1}",
     "9" * 17 + ":ncpus=1"],
    ids=["long", "groups", "licences", "resources", "cpus", "count"],
)  # fmt: skip
def test_input_is_bounded(text: str) -> None:
    with pytest.raises(RequestError):
        parse_request(text)
    assert len("1:" * 4000) > MAX_LENGTH


# ---------------------------------------------------------------- properties

BUILT_IN = {
    "ncpus", "cores", "mem", "vmem", "ngpus", "mpiprocs", "ompthreads", "host", "gpu",
    "place", "select", "rset",
}  # fmt: skip
NAME_REST = string.ascii_letters + string.digits + "_.-"
names = st.builds(
    str.__add__,
    st.sampled_from(string.ascii_letters + "_"),
    st.text(NAME_REST, max_size=8),
).filter(lambda name: name.lower() not in BUILT_IN)
words = st.text(NAME_REST, min_size=1, max_size=8)
values = words.filter(
    lambda word: (
        word.lower() not in ("true", "false")
        and not (word.isdigit() and (word == "0" or word[0] != "0"))
    )
)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    others = draw(
        st.dictionaries(
            names,
            st.one_of(st.integers(0, 1 << 20), values, st.just(True)),
            max_size=4,
        )
    )
    amounts = [(k, v) for k, v in others.items() if isinstance(v, int) and v is not True]
    if gpus := draw(st.integers(0, 8)):
        amounts.append(("gpu", gpus))
    features = [k if v is True else f"{k}={v}" for k, v in others.items() if (k, v) not in amounts]
    return Chunk(
        count=draw(st.integers(1, 1000)),
        ncpus=draw(st.integers(1, MAX_CPUS)),
        mem_mib=draw(st.one_of(st.just(0), st.integers(1, 1 << 40))),
        amounts=tuple(sorted(amounts)),
        mpiprocs=draw(st.integers(0, 99)),
        ompthreads=draw(st.integers(0, 99)),
        features=tuple(sorted(features)),
        host=draw(st.one_of(st.just(""), words)),
    )


@st.composite
def requests(draw: st.DrawFn) -> ChunkRequest:
    exclusive = draw(st.booleans())
    place = Place(
        draw(st.sampled_from(Arrangement)),
        exclusive,
        not exclusive and draw(st.booleans()),
        draw(st.one_of(st.just(""), words)),
    )
    licences = draw(
        st.dictionaries(
            words.filter(lambda w: w.lower() not in BUILT_IN or w == "gpu"),
            st.integers(1, 1 << 20),
            max_size=3,
        )
    )
    return ChunkRequest(
        tuple(draw(st.lists(chunks(), min_size=1, max_size=4))),
        place,
        tuple(sorted(licences.items())),
    )


@given(requests())
def test_what_is_written_reads_back(request: ChunkRequest) -> None:
    text = format_request(request)
    if len(text) <= MAX_LENGTH:
        assert parse_request(text) == request


grammar = st.lists(
    st.sampled_from([*"0123456789:=+,. -_abgkmtNx\n\0é", "ncpus=", "mem=", "place=", "select="]),
    max_size=30,
).map("".join)


@given(st.one_of(st.text(), grammar), st.one_of(st.just(""), st.text(), grammar))
@example("ncpus=1", "place=")
@example("İ,place=free", "free")
def test_nothing_raises_anything_else(text: str, place: str) -> None:
    wrong, request = None, None
    try:
        request = parse_request(text, place)
    except RequestError as refused:
        wrong = refused
    if request is not None:
        assert parse_request(format_request(request)) == request
    if wrong is not None:
        assert 0 <= wrong.position <= len(wrong.text)
