# SPDX-License-Identifier: Apache-2.0
"""Reads the planted faults, and applies one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("mutants.yaml")


class Unfit(Exception):
    """A fault that cannot be tried, and why."""


@dataclass(frozen=True)
class Mutant:
    """One replacement, and the suites that may notice it."""

    name: str
    file: str
    old: str
    new: str
    suites: tuple[str, ...]

    def text(self, root: Path = ROOT) -> str:
        """The file with the fault in it.

        Raises:
            Unfit: the old text is not there exactly once.
        """
        path = root / self.file
        if not path.is_file():
            raise Unfit(f"'{self.name}': {self.file} is gone")
        before = path.read_text(encoding="utf-8")
        if (count := before.count(self.old)) != 1:
            raise Unfit(f"'{self.name}': its text is {count} times in {self.file}: renew the patch")
        return before.replace(self.old, self.new)


def read(text: str) -> tuple[dict[str, list[str]], list[Mutant]]:
    """Suites by name, and the mutants.

    Raises:
        Unfit: one names an unknown suite or fewer than two, changes nothing, or is there twice.
    """
    data: dict[str, Any] = yaml.safe_load(text)
    mutants = [Mutant(**{**entry, "suites": tuple(entry["suites"])}) for entry in data["mutants"]]
    for mutant in mutants:
        unknown = set(mutant.suites) - set(data["suites"])
        if unknown or len(set(mutant.suites)) < 2:
            raise Unfit(f"'{mutant.name}' needs two suites that there are, not {mutant.suites}")
        if mutant.old == mutant.new:
            raise Unfit(f"'{mutant.name}' changes nothing")
    names = [mutant.name for mutant in mutants]
    if len(set(names)) < len(names):
        raise Unfit("two mutants have the same name")
    return data["suites"], mutants
