# SPDX-License-Identifier: Apache-2.0
"""The cases of the differential test are read as they are meant."""

import pytest
import yaml

from bridge.planning.site_rules.rules_text import PlanningSection
from tests.differential.cases import UNSUPPORTED, CaseError, choose, load, read
from tests.differential.variants import VARIANTS

ONE = """
topic: sizes
defaults: {placement: true}
cases:
  - name: "{n} of {part}"
    with: {n: [1, 2], part: {default: "", mixed: "-p mixed"}}
    submit: sbatch -N{n} {part}
    prepare: hold -N{n}
  - name: beside
    placement: no
    submit:
      - srun -n2 ...
      - {line: salloc -n1 ..., as: alice}
      - sbatch --wrap true
"""


def test_a_case_for_every_combination():
    cases = read(ONE, "one.yaml")
    assert [case.name for case in cases] == [
        "1 of default", "1 of mixed", "2 of default", "2 of mixed", "beside"
    ]  # fmt: skip
    assert cases[3].submit[0].line == "sbatch -N2 -p mixed --wrap 'sleep 300'"
    assert cases[3].prepare == "hold -N2"
    assert cases[0].placement
    assert not cases[4].placement


def test_a_case_of_several_variants_is_one_on_each():
    text = "topic: t\ncases:\n  - {name: 'a {n}', with: {n: [1, 2]}, submit: 'sbatch -n{n}'%s}\n"
    cases = read(text % ", variants: [plain, cpus]", "one.yaml")
    assert [(case.variant, case.topic, case.name) for case in cases] == [
        ("plain", "t", "a 1"), ("plain", "t", "a 2"), ("cpus", "t, CR_CPU", "a 1"),
        ("cpus", "t, CR_CPU", "a 2"),
    ]  # fmt: skip
    assert {case.variant for case in read(text % "", "one.yaml")} == {"plain"}


def test_the_service_accepts_the_planning_of_each_variant():
    for variant in VARIANTS.values():
        planning = yaml.safe_load(variant.planning or "planning: {}")["planning"]
        assert bool(PlanningSection.model_validate(planning).site().rules.free_pools) == bool(
            variant.planning
        )


def test_who_submits_and_who_is_waited_for():
    srun, salloc, sbatch = read(ONE, "one.yaml")[4].submit
    assert (srun.line, srun.user, srun.foreground) == ("srun -n2 sleep 300", "user", False)
    assert (salloc.user, salloc.foreground) == ("alice", False)
    assert (sbatch.line, sbatch.foreground) == ("sbatch --wrap true", True)


def test_the_words_choose():
    cases = read(ONE, "one.yaml")
    assert [case.name for case in choose(cases, "SIZES mixed")] == ["1 of mixed", "2 of mixed"]
    assert choose(cases, "") == cases


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{name: a}", "needs a name and a submission"),
        ("{name: a, submit: sbatch, wait: 3}", "unknown key wait"),
        ("{name: a, submit: scancel 1}", "is sbatch, srun or salloc"),
        ("{name: a, submit: [{line: sbatch, at: 1}]}", "unknown key at of a submission"),
        ("{name: a, submit: sbatch, watch: long}", "started or ended"),
        ("{name: '{p}', submit: sbatch, with: {p: [yes]}}", "put it in quotes"),
        ("{name: a, submit: sbatch, unsupported: laziness}", "not in UNSUPPORTED"),
        ("{name: a, submit: sbatch, variants: [plain, square]}", "no variant square"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(entry, told):
    with pytest.raises(CaseError, match=told) as raised:
        read(f"topic: t\ncases:\n  - {entry}\n", "some.yaml")
    assert "some.yaml: case 1" in str(raised.value)


def test_a_name_is_given_once(tmp_path):
    for file in ("a.yaml", "b.yaml"):
        (tmp_path / file).write_text("topic: t\ncases:\n  - {name: a, submit: sbatch}\n")
    with pytest.raises(CaseError, match="two cases are called"):
        load(tmp_path)


def test_the_cases_of_the_project():
    cases = load()
    assert all(case.unsupported in ("", *UNSUPPORTED) for case in cases)
    assert not [case.name for case in cases if "{" in case.name]
