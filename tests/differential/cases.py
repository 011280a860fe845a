# SPDX-License-Identifier: Apache-2.0
"""The cases, read from cases/*.yaml: one file a topic.

```yaml
topic: nodes                      # of the table
defaults: {placement: true}       # for every case of this file
cases:
  - name: "{n} nodes of {part}"   # a case for every combination of `with`
    with: {n: [1, 2], part: {main: "-p main", all: "-p all"}}   # or label: value
    submit: sbatch -N{n} {part}
```

A case
    submit     a line, or a list of lines, or of {line:, as: USER, foreground: yes}.
               `sbatch` without --wrap sleeps; `...` in a line of srun or salloc is such a sleep
    prepare    a script for root, before; `hold`, `id`, `runs` and `reserve` are in agent.PREAMBLE.
               The case begins when all its jobs run (prepare_waits: no - at once)
    then       a script for root, `then_after_s` after the submission
    watch      started (as soon as all run; the default) or ended
    settle_s   a job that has not started by then is waiting
    placement  yes: only one choice of nodes is right, and nodes are compared by name
    contiguous yes: the nodes must be contiguous
    says       a regular expression that the bridge's pending reasons must match, where Slurm's
               reasons say less
    ignore     kinds of findings to ignore (compare.Kind)
    undo       a script for root that repairs what `clear` does not
    by_design  why the bridge differs here
    unsupported  the missing feature: one of UNSUPPORTED
    variants   the sites (variants.VARIANTS) on which the case is run; [plain] if not stated
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.differential.variants import VARIANTS

FOLDER = Path(__file__).with_name("cases")
UNSUPPORTED = ("preemption", "heterogeneous jobs", "srun -I", "federation", "burst buffers")
_SLEEP = "sleep 300"


class CaseError(Exception):
    """A file of cases is wrong; the message says where."""


@dataclass(frozen=True)
class Submission:
    """A line of a user; in the foreground it is waited for, as sbatch is."""

    line: str
    user: str = "user"
    foreground: bool = True


@dataclass(frozen=True)
class Case:
    """One job or several, submitted under one set of conditions."""

    name: str
    topic: str
    submit: tuple[Submission, ...]
    prepare: str = ""
    prepare_waits: bool = True
    then: str = ""
    then_after_s: float = 1.0
    watch: str = "started"
    settle_s: float = 1.5
    placement: bool = False
    contiguous: bool = False
    says: str = ""
    ignore: tuple[str, ...] = ()
    undo: str = ""
    by_design: str = ""
    unsupported: str = ""
    variant: str = "plain"

    @property
    def lines(self) -> str:
        """What is submitted, as the table shows it."""
        return " ; ".join(one.line for one in self.submit)


_KEYS = {
    "name", "with", "submit", "prepare", "prepare_waits", "then", "then_after_s", "watch",
    "settle_s", "placement", "contiguous", "says", "ignore", "undo", "by_design", "unsupported",
    "variants",
}  # fmt: skip


def load(folder: Path = FOLDER) -> list[Case]:
    """All cases of a folder.

    Raises:
        CaseError: a file is wrong, or two cases have the same name.
    """
    found: list[Case] = []
    for path in sorted(folder.glob("*.yaml")):
        found += read(path.read_text(encoding="utf-8"), path.name)
    names = [(case.topic, case.name) for case in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise CaseError(f"two cases are called {min(twice)}")
    return found


def read(text: str, where: str) -> list[Case]:
    """The cases of one file.

    Raises:
        CaseError: it is wrong.
    """
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CaseError(f"{where}: {error}") from None
    if not isinstance(given, dict) or set(given) - {"topic", "defaults", "cases"}:
        raise CaseError(f"{where}: needs topic, defaults and cases, and nothing else")
    made = []
    for number, entry in enumerate(given["cases"], 1):
        at = f"{where}: case {number} ({entry.get('name', 'no name')})"
        entry = {**given.get("defaults", {}), **entry}  # noqa: PLW2901
        if unknown := set(entry) - _KEYS:
            raise CaseError(f"{at}: unknown key {min(unknown)}")
        if not entry.get("name") or not entry.get("submit"):
            raise CaseError(f"{at}: needs a name and a submission")
        for key, values in entry.get("with", {}).items():
            words = values.values() if isinstance(values, dict) else values
            if any(isinstance(word, bool) for word in words):
                raise CaseError(f"{at}: a word of {key} is yes or no to YAML: put it in quotes")
        variants = entry.pop("variants", ["plain"])
        if unknown := set(variants) - set(VARIANTS):
            raise CaseError(f"{at}: there is no variant {min(unknown)}")
        entries = list(_combinations(entry))
        made += [_case(given["topic"], dict(one), at, name) for name in variants for one in entries]
    return made


def _combinations(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The entry for every combination of `with`: labels in the name, values elsewhere."""
    choices = []
    for key, values in entry.get("with", {}).items():
        pairs = values.items() if isinstance(values, dict) else ((v, v) for v in values)
        choices.append([(key, str(label), value) for label, value in pairs])
    rest = {key: value for key, value in entry.items() if key != "with"}
    for chosen in itertools.product(*choices):
        labels = {key: label for key, label, _ in chosen}
        values = {key: str(value) for key, _, value in chosen}
        yield {
            key: _filled(value, labels if key == "name" else values) for key, value in rest.items()
        }


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for key, word in words.items():
            value = value.replace("{" + key + "}", word)
    elif isinstance(value, list):
        return [_filled(one, words) for one in value]
    elif isinstance(value, dict):
        return {key: _filled(one, words) for key, one in value.items()}
    return value


def _case(topic: str, entry: dict[str, Any], at: str, variant: str) -> Case:
    title = VARIANTS[variant].title
    submit = entry.pop("submit")
    lines = submit if isinstance(submit, list) else [submit]
    case = Case(
        topic=f"{topic}, {title}" if title else topic, variant=variant,
        submit=tuple(_submission(line, at) for line in lines),
        ignore=tuple(entry.pop("ignore", ())), **entry,
    )  # fmt: skip
    if case.watch not in ("started", "ended"):
        raise CaseError(f"{at}: watch is started or ended, not {case.watch}")
    if case.unsupported and case.unsupported not in UNSUPPORTED:
        raise CaseError(f"{at}: '{case.unsupported}' is not in UNSUPPORTED")
    return case


def _submission(given: str | dict[str, Any], at: str) -> Submission:
    entry = {"line": given} if isinstance(given, str) else dict(given)
    line, user = " ".join(entry.pop("line").split()), entry.pop("as", "user")
    program = next((word for word in line.split() if "=" not in word), "")
    if program not in ("sbatch", "srun", "salloc"):
        raise CaseError(f"{at}: a submission is sbatch, srun or salloc, not '{line}'")
    foreground = entry.pop("foreground", program == "sbatch")
    if entry:
        raise CaseError(f"{at}: unknown key {min(entry)} of a submission")
    if program == "sbatch" and "--wrap" not in line and "<<" not in line:
        # Before a colon that begins the next part of a heterogeneous job it would be of that part.
        line = f"{line} --wrap '{_SLEEP}'"
    return Submission(line.replace("...", _SLEEP), user, foreground)


def choose(cases: list[Case], words: str) -> list[Case]:
    """Those whose topic and name hold all these words."""
    wanted = words.lower().split()
    return [c for c in cases if all(word in f"{c.topic}: {c.name}".lower() for word in wanted)]
