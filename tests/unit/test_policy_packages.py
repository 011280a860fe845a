# SPDX-License-Identifier: Apache-2.0
import sys
from dataclasses import make_dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from bridge import registry
from bridge.errors import ConfigError
from bridge.model.policy import Algorithm, PolicyPackage, PolicySpec, preset
from bridge.policy_packages import GROUP, gathered

SOUND = PolicyPackage(
    {"order": {"by-colour": Algorithm("colours:ByColour")}},
    (preset("colourful", "by-colour", "easy", "best-fit"),),
)
OTHER = PolicyPackage(presets=(preset("plain", "fcfs", "easy", "sequential"),))
MALFORMED = {
    "no package": "a text",
    "no mapping": PolicyPackage(algorithms=[]),
    "no stage": PolicyPackage({"paint": {}}),
    "no algorithms": PolicyPackage({"order": ["x"]}),
    "no algorithm": PolicyPackage({"order": {"x": "colours:ByColour"}}),
    "no class": PolicyPackage({"order": {"x": Algorithm("colours")}}),
    "no name": PolicyPackage({"order": {"": Algorithm("colours:ByColour")}}),
    "a name that moves the cursor": PolicyPackage({"plan": {"a\x1b[A": Algorithm("a:B")}}),
    "no presets": PolicyPackage(presets=3),
    "no preset": PolicyPackage(presets=("plain",)),
    "a preset without a name": PolicyPackage(presets=(preset(None, "fcfs", "easy", "best-fit"),)),
}


def points(**packages):
    """Entry points with these objects, in modules of their own."""
    made = []
    for name, package in packages.items():
        module = ModuleType(f"package_{name}")
        module.PACKAGE = package
        sys.modules[module.__name__] = module
        made.append(EntryPoint(name, f"{module.__name__}:PACKAGE", GROUP))
    return made


def test_what_two_packages_offer_is_beside_what_comes_with_schedbridge():
    alone, found = gathered([]), gathered(points(b=SOUND, a=OTHER))
    assert set(found.presets) - set(alone.presets) == {"colourful", "plain"}
    assert set(found.algorithms["order"]) - set(alone.algorithms["order"]) == {"by-colour"}
    assert found.package_of == {"colourful": "b", "plain": "a"}
    assert not found.problems


@pytest.mark.parametrize("bad", MALFORMED)
def test_a_malformed_package_is_left_out_and_named(bad):
    found = gathered(points(bad=MALFORMED[bad], good=SOUND))
    only = gathered(points(good=SOUND))
    assert (found.presets, found.algorithms) == (only.presets, only.algorithms)
    [problem] = found.problems
    assert "'bad'" in problem
    assert problem.isprintable()


@pytest.mark.parametrize("value", ["no_such_module:PACKAGE", "sys:PACKAGE"])
def test_a_package_that_cannot_be_loaded_is_left_out_and_named(value):
    found = gathered([EntryPoint("bad", value, GROUP), *points(good=SOUND)])
    assert "colourful" in found.presets
    [problem] = found.problems
    assert value in problem


def test_a_name_that_is_taken_stays_what_it_was():
    thief = PolicyPackage(
        {"order": {"fcfs": Algorithm("colours:ByColour")}},
        (preset("easy", "by-colour", "easy", "best-fit"), OTHER.presets[0]),
    )
    found = gathered(points(z=OTHER, a=thief))
    assert found.algorithms["order"]["fcfs"].path.startswith("bridge.")
    assert isinstance(found.presets["easy"], PolicySpec)
    assert found.presets["easy"].order.name == "fcfs"
    assert found.package_of == {"plain": "a"}
    assert len(found.problems) == 3


@pytest.mark.parametrize(
    ("source", "why"),
    [("def broken(:\n", "SyntaxError"), ("1 / 0\n", "ZeroDivisionError"), ("", "AttributeError")],
)
def test_an_algorithm_that_cannot_be_loaded_is_refused_with_its_name(
    source, why, monkeypatch, tmp_path
):
    for package in ("colours", "shapes"):
        (tmp_path / f"{package}_{why}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    package = PolicyPackage(
        {
            "order": {"by-colour": Algorithm(f"colours_{why}:ByColour")},
            "place": {"by-shape": Algorithm(f"shapes_{why}:ByShape")},
        }
    )
    found = gathered(points(good=package))
    monkeypatch.setattr(registry, "known", lambda: found)
    for stage, name in (("order", "by-colour"), ("place", "by-shape")):
        with pytest.raises(ConfigError, match=rf"^policy\.{stage}: '{name}'.*{why}.*uninstall"):
            registry.parse_policy({stage: name})


def test_an_algorithm_that_cannot_be_made_is_refused_with_its_name(monkeypatch):
    module = ModuleType("angry")
    module.Angry = make_dataclass("Angry", [], namespace={"__post_init__": lambda self: 1 // 0})
    monkeypatch.setitem(sys.modules, "angry", module)
    angry = PolicyPackage(
        {stage: {"angry": Algorithm("angry:Angry")} for stage in ("order", "plan")}
    )
    monkeypatch.setattr(registry, "known", lambda: gathered(points(good=angry)))
    for stage in angry.algorithms:
        with pytest.raises(ConfigError, match=rf"policy\.{stage}: 'angry' .*ZeroDivisionError"):
            registry.parse_policy({stage: "angry"})
