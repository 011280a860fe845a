# SPDX-License-Identifier: Apache-2.0
"""Sizes, durations, selects, allocations, limits and formulas as PBS writes them."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.errors import BadRequest
from bridge.pbs.objects import indices, values
from bridge.pbs.objects.definitions import read_definitions
from bridge.pbs.objects.exec_vnode import format_exec_vnode, parse_exec_vnode
from bridge.pbs.objects.formula import read_formula
from bridge.pbs.objects.limits import Owner, exceeded, is_above_soft, read_limits, runs_left
from bridge.pbs.objects.select import PbsChunk, parse_place, parse_select
from schedbridge_contracts.crosses import each
from tests.pbs_tables import RESOURCES

DEFINED = read_definitions(RESOURCES)


@pytest.mark.parametrize(
    ("text", "kib"),
    [("4gb", 4 << 20), ("1", 1), ("1025b", 2), ("2kw", 16), ("1TB", 1 << 30), ("512", 1),
     ("3mb", 3072)],
)  # fmt: skip
def test_sizes(text, kib):
    assert values.size_kib(text) == kib


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3600", 3600), ("01:00:00", 3600), ("02:30", 150), ("1:00:00:00", 86_400), ("5.9", 5)],
)
def test_durations(text, seconds):
    assert values.duration_s(text) == seconds


READERS = [
    values.size_kib, values.duration_s, values.whole, values.decimal, values.boolean, parse_select,
    parse_place, read_formula, lambda text: parse_exec_vnode(text, DEFINED),
]  # fmt: skip


@given(st.text(max_size=60), st.sampled_from(READERS))
@example("9" * 40, values.size_kib)
@example("((((1))))", read_formula)
@example('2:ncpus="a', parse_select)
def test_texts_of_any_kind_are_read_or_refused(text, reader):
    with contextlib.suppress(BadRequest):
        reader(text)


def test_a_select_may_contain_its_signs_in_quotes():
    assert parse_select('2:ncpus=1:color="a+b:c"+1') == (
        PbsChunk(2, {"ncpus": "1", "color": "a+b:c"}), PbsChunk(1, {}),
    )  # fmt: skip


PARTS = st.tuples(
    st.sampled_from(["n1", "n4[0]", "a-b.c"]),
    st.fixed_dictionaries(
        {}, optional={"ncpus": st.integers(0, 99), "mem": st.integers(0, 1 << 40)}
    ),
)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3), min_size=1, max_size=4))
def test_allocations_are_read_as_written(chunks):
    written = format_exec_vnode(chunks, DEFINED)
    assert parse_exec_vnode(written, DEFINED) == [[(name, dict(taken)) for name, taken in parts]
                                                  for parts in chunks]  # fmt: skip


@pytest.mark.parametrize("name", ["n1)", "n1+n2", "", "n{0}", "3#n1", "n1:ncpus=9", "n 1"])
def test_no_name_can_break_an_allocation(name):
    with pytest.raises(BadRequest):
        format_exec_vnode([[(name, {"ncpus": 1})]], DEFINED)


def test_indices_are_counted_without_being_listed():
    assert indices.count("0-999999998,5:2,-") == 1_000_000_000 - 1 + 1
    assert indices.first_without("3-9:3,12", {3, 6}) == 9
    assert indices.first_without("-", set()) == -1


ANN = Owner("ann", "staff", "lab")


@pytest.mark.parametrize(
    ("attributes", "used", "wanted", "why"),
    [
        ({"max_run": "[u:PBS_GENERIC=2]"}, 2, {}, "user ann: 2 of at most 2 jobs run"),
        ({"max_run": "[u:PBS_GENERIC=2],[u:ann=3]"}, 2, {}, ""),
        ({"max_run": '[u:PBS_GENERIC=2], [u:"ann"=1]'}, 1, {}, "user ann: 1 of at most 1 jobs run"),
        ({"max_run": "[g:staff=1]"}, 1, {}, "group staff: 1 of at most 1 jobs run"),
        ({"max_run": "[p:lab=1]"}, 1, {}, "project lab: 1 of at most 1 jobs run"),
        ({"max_run": "[u:bob=0],[g:PBS_GENERIC=9]"}, 5, {}, ""),
        ({"max_run": "nonsense"}, 5, {}, ""),
        ({"max_run_res": {"mem": "[o:PBS_ALL=2gb]"}}, 0, {"mem": 3 << 20},
         "all jobs: 0kb of at most 2097152kb mem in use"),
        ({"max_run_res": {"mem": "[o:PBS_ALL=2gb]"}}, 0, {"ncpus": 5}, ""),
        ({"max_user_run": "1"}, 1, {}, "user ann: 1 of at most 1 jobs run"),
    ],
)  # fmt: skip
def test_limits(attributes, used, wanted, why):
    limits = read_limits("the server", attributes, DEFINED)
    present = {(entity, ""): float(used) for entity in ANN.entities}
    found = exceeded([(limits, present)], ANN, wanted, DEFINED)
    assert found == (f"limit of the server for {why}" if why else "")


def test_soft_limits_and_what_is_left():
    limits = read_limits(
        "queue q", {"max_run_soft": "[u:ann=1]", "max_run": "[o:PBS_ALL=5]"}, DEFINED
    )
    present = {(entity, ""): 2.0 for entity in ANN.entities}
    assert is_above_soft([(limits, present)], ANN)
    assert not is_above_soft([(limits, {})], ANN)
    assert runs_left([(limits, present)], ANN) == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ncpus * 2 + walltime / 60", 18.0),
        ("min(ncpus, 3) ** 2", 9.0),
        ("5 if ncpus > 3 else 1", 5.0),
        ("-unknown + (job_priority + 1)", 1.0),
        ("ncpus >= 2 and not walltime", 0.0),
    ],
)  # fmt: skip
def test_formulas(text, value):
    assert read_formula(text).value({"ncpus": 4, "walltime": 600}) == value


@each(
    text=[
        "__import__('os').system('id')", "().__class__", "ncpus.real", "[x for x in ()]",
        "lambda: 1",
        "'a' * 10", "open('/etc/passwd')", "ncpus[0]", "print(1)", "min(*[1])", "pow(2, 3, x=1)",
        "1 +", "", "9" * 5000, "(" * 2000 + "1" + ")" * 2000, "+".join(["1"] * 2000),
        "import os", "1; 2", "1e999", "a := 1",
    ],
)  # fmt: skip
def test_poisoned_formulas_are_refused_with_one_message(text):
    with pytest.raises(BadRequest, match="job_sort_formula"):
        read_formula(text)


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "9 ** 9 ** 9", "sqrt(0 - 1)", "log(0)", "exp(1e9)", "min()", "round(1e308 * 10)"],
)
def test_formulas_without_a_value(text):
    with pytest.raises(BadRequest, match="job_sort_formula has no"):
        read_formula(text).value({})
