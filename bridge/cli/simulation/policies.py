# SPDX-License-Identifier: Apache-2.0
"""Policies as the commands take them: a preset's name, or a YAML file; with a budget behind it."""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge import files, yaml_text
from bridge.errors import ConfigError
from bridge.model.policy import PolicySpec, StageSpec
from bridge.planning.site_rules.rules_text import parse_site
from bridge.registry import PRESETS, build, parse_policy

SiteOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Limits, FreePools and protections: a service's configuration, or its section"
        " 'planning' alone (YAML).",
    ),
]
_SECTIONS = {"planning", "policy", "controller", "operator"}


def read_policy(value: str) -> PolicySpec:
    """A preset by name, or the policy in a YAML file.

    Raises:
        ConfigError: neither, or the file has invalid values.
    """
    if value in PRESETS:
        return PRESETS[value]
    path = Path(value)
    if not path.is_file():
        raise ConfigError(
            "policy", f"'{value}' is neither a preset ({', '.join(PRESETS)}) nor a file"
        )
    try:
        return parse_policy(yaml_text.load(files.read_text(path)))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=value) from None
    except (yaml_text.NoYaml, UnicodeDecodeError) as error:
        raise ConfigError("", f"is not YAML: {error}", file=value) from None
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, file=value) from None


def read_planning(path: Path | None) -> dict[str, Any]:
    """The rules of a site, from a YAML file; none without one.

    The file is a service's configuration, of which only the section `planning` is used, or that
    section alone.

    Raises:
        ConfigError: it cannot be read, or is invalid.
    """
    if path is None:
        return {}
    try:
        value = yaml_text.load(files.read_text(path))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=str(path)) from None
    except (yaml_text.NoYaml, UnicodeDecodeError) as error:
        raise ConfigError("", f"is not YAML: {error}", file=str(path)) from None
    if not isinstance(value, dict):
        raise ConfigError("", "must be the section 'planning' of a configuration", file=str(path))
    inner = value.get("planning", {}) if _SECTIONS & value.keys() else value
    try:
        parse_site(inner)
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, file=str(path)) from None
    return dict(inner or {})


def with_budget(spec: PolicySpec, budget_ms: int, *, work: bool = False) -> PolicySpec | None:
    """The policy with this budget only; None if its plan stage has no budget.

    Args:
        budget_ms: the budget by the clock.
        work: the budget of counted work instead, which is the same on any machine at any load.

    Raises:
        ConfigError: it cannot have that budget.
    """
    stage = build(spec).plan
    known: set[str] = {each.name for each in fields(stage)} if is_dataclass(stage) else set()
    if "budget_ms" not in known:
        return None
    # A bound on deterministic effort would end it early, especially on a fast machine.
    wished: dict[str, float] = {"budget_ms": budget_ms}
    if "effort" in known:
        solver = work and hasattr(stage, "solve")  # its effort counts seconds
        wished["effort"] = budget_ms / 1000 if solver else 0
    plan = StageSpec(spec.plan.name, {**spec.plan.parameters, **wished})
    budgeted = replace(spec, plan=plan)
    build(budgeted)
    return budgeted


def budgeted(text: str) -> tuple[str, int | None]:
    """Splits `name@50` into the name and the budget in ms.

    Raises:
        ConfigError: the text after the `@` is not a number of milliseconds.
    """
    name, at, budget = text.rpartition("@")
    if not at:
        return text, None
    if not budget.isdecimal() or not 0 < int(budget) < 10**7:
        raise ConfigError("policies", f"'{text}': after the @, give a budget in ms, as in @50")
    return name, int(budget)
