# SPDX-License-Identifier: Apache-2.0
"""Every planted fault still applies; `scripts/test mutants` tries them."""

import dataclasses

import pytest

from tests.crosses import each
from tests.mutants.mutants import FILE, Unfit, read

SUITES, MUTANTS = read(FILE.read_text(encoding="utf-8"))


@each(mutant={mutant.name: mutant for mutant in MUTANTS})
def test_a_mutant_applies_and_is_a_program(mutant):
    text = mutant.text()
    if mutant.file.endswith(".py"):
        compile(text, mutant.file, "exec")


def test_a_patch_that_does_not_apply_is_loud():
    mutant = dataclasses.replace(MUTANTS[0], old="what is nowhere")
    with pytest.raises(Unfit, match="renew the patch"):
        mutant.text()


def test_a_mutant_that_names_one_suite_is_refused():
    text = """
suites: {a: [pytest, x], b: [pytest, y]}
mutants: [{name: m, file: f, old: o, new: n, suites: [a]}]
"""
    with pytest.raises(Unfit, match="two suites"):
        read(text)
