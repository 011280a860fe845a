# SPDX-License-Identifier: Apache-2.0
"""What a mark before a fenced block says: where it runs, or why it does not."""

from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Place = Literal["host", "checkout", "login", "controller", "service", "container", "pbs"]
"""See README.md."""
Kind = Literal[
    "configuration", "policy", "system", "corridor", "experiment", "signal", "event", "nodes",
    "workload",
]  # fmt: skip
"""What a block is, as a reader of the product takes it."""
ON_CLUSTER = ("login", "controller", "service", "container")
"""Places for which the tests need a Docker engine."""


class _Mark(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Run(_Mark):
    """The block is a shell script, and is run; or lines of a file that another command reads.

    Attributes:
        run: where.
        engine: it starts containers itself.
        slow: it takes more than some seconds of CPU, and runs with the cluster's blocks.
        user: who types it, at `login` and, other than root, at `pbs`.
        files: those it needs, by name: their paths in the checkout; or names of `samples`.
        first: shell commands that the page takes for granted.
        lines: the block is no script; it becomes this file, and `then` puts it into use.
        where: words of the block that stand for something: the command that prints it.
        then: shell commands that check what the block has done, or end it.
        exits: the exit code.
    """

    run: Place
    engine: bool = False
    slow: bool = False
    user: str = ""
    files: dict[str, str] | list[str] = Field(default_factory=list)
    first: str = ""
    lines: str = ""
    where: dict[str, str] = Field(default_factory=dict)
    then: str = ""
    exits: int = 0

    @property
    def on_cluster(self) -> bool:
        """It needs a Docker engine."""
        return self.engine or self.run in ON_CLUSTER

    @property
    def at_hand(self) -> bool:
        """It takes seconds, and needs no more than this machine."""
        return not (self.on_cluster or self.slow or self.run == "pbs")


class Output(_Mark):
    """The block is what the last block that was run prints.

    Attributes:
        output: of what: `above`, or a command at the same place that prints it.
    """

    output: str


class Load(_Mark):
    """The block is loaded as one of these.

    Attributes:
        load: what it is.
        files: as in `Run`.
    """

    load: Kind
    files: dict[str, str] | list[str] = Field(default_factory=list)


class NotRun(_Mark):
    """The block cannot be run here.

    Attributes:
        reason: why.
    """

    reason: str = Field(alias="not run", min_length=8)


class Drawing(_Mark):
    """The block holds nothing to type.

    Attributes:
        drawing: of what.
    """

    drawing: str


Mark = Run | Output | Load | NotRun | Drawing
_MARKS: dict[str, type[Mark]] = {
    "run": Run, "output": Output, "load": Load, "not run": NotRun, "drawing": Drawing,
}  # fmt: skip


class PageCluster(_Mark):
    """The cluster that a page's blocks need; it stands anywhere in the page, before no block.

    Attributes:
        cluster: options of `scripts/cluster up`.
        service: further lines of the service's configuration.
    """

    cluster: Annotated[str, Field(min_length=1)]
    service: str = ""


class BadMark(ValueError):
    """A mark that says nothing, or too much."""


def parse(text: str) -> Mark | PageCluster | None:
    """The mark in a comment; None: a comment for readers of the source.

    Raises:
        BadMark: it begins like a mark, and is none.
    """
    first = text.strip().partition(":")[0].strip()
    model: type[Mark | PageCluster] | None = _MARKS.get(first)
    if first == "cluster":
        model = PageCluster
    if model is None:
        return None
    try:
        found = yaml.safe_load(text.strip())
        return model.model_validate(found)
    except yaml.YAMLError as error:
        raise BadMark(f"is not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise BadMark(said) from None
