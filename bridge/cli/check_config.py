# SPDX-License-Identifier: Apache-2.0
"""`schedbridge check-config FILE`: checks a configuration and prints it with all defaults."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from bridge.cli.operators.asking import JsonOption
from bridge.dialect import dialect_named
from bridge.errors import ConfigError
from bridge.input_problems import ConfigProblems
from bridge.service.config import load, to_mapping


def check_config(
    file: Annotated[Path, typer.Argument(help="Configuration file (YAML).")],
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print problems only.")] = False,
) -> None:
    """Check a configuration file; print it with all defaults filled in.

    Exit code 1 and one line per problem if the file is invalid. Users, directories and addresses
    are checked when the service starts. A topology.conf that is missing or invalid causes a
    warning.
    """
    try:
        config = load(file)
        found = to_mapping(config)
    except ConfigError as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, ConfigProblems) else (error,)
        listed = [{"file": p.file, "key": p.key, "problem": p.problem} for p in problems]
        print(json.dumps({"ok": False, "problems": listed}, indent=2))
        raise typer.Exit(1) from None
    if config.topology.file is not None:
        try:
            dialect_named("").read_topology(config.topology.file)
        except ConfigError as error:
            print(
                f"warning: {error}; without it jobs are placed as if there were no switches",
                file=sys.stderr,
            )
    if as_json:
        print(json.dumps({"ok": True, "config": found}, indent=2))
    elif not quiet:
        print(f"# {file} is valid; with all defaults it reads")
        print(yaml.safe_dump(found, sort_keys=False), end="")
