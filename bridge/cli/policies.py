# SPDX-License-Identifier: Apache-2.0
"""Policies as the commands take them: a preset's name, or a YAML file; with a budget behind it."""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import yaml

from bridge.errors import ConfigError
from bridge.model.policy import PolicySpec, StageSpec
from bridge.registry import PRESETS, build, parse_policy


def read_policy(value: str) -> PolicySpec:
    """A preset by name, or the policy in a YAML file.

    Raises:
        ConfigError: neither, or the file says something impossible.
    """
    if value in PRESETS:
        return PRESETS[value]
    path = Path(value)
    if not path.is_file():
        raise ConfigError(
            "policy", f"'{value}' is no preset ({', '.join(PRESETS)}) and no file either"
        )
    try:
        return parse_policy(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=value) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError("", f"is not YAML: {problem}", file=value) from None
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, file=value) from None


def with_budget(spec: PolicySpec, budget_ms: int) -> PolicySpec | None:
    """The policy with a wall-clock budget and no other; None if its plan stage has none to set.

    Raises:
        ConfigError: it cannot have that budget.
    """
    stage = build(spec).plan
    known: set[str] = {each.name for each in fields(stage)} if is_dataclass(stage) else set()
    if "budget_ms" not in known:
        return None
    # A bound of deterministic effort would end it early, on a quick machine most of all.
    wished = {"budget_ms": budget_ms} | ({"effort": 0} if "effort" in known else {})
    plan = StageSpec(spec.plan.name, {**spec.plan.parameters, **wished})
    budgeted = replace(spec, plan=plan)
    build(budgeted)
    return budgeted


def budgeted(text: str) -> tuple[str, int | None]:
    """Splits `name@50` into the name and the budget in ms.

    Raises:
        ConfigError: what stands behind the `@` is no number of milliseconds.
    """
    name, at, budget = text.rpartition("@")
    if not at:
        return text, None
    if not budget.isdecimal() or not 0 < int(budget) < 10**7:
        raise ConfigError("policies", f"'{text}': behind the @ stands a budget in ms, as in @50")
    return name, int(budget)
