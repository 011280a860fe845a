# SPDX-License-Identifier: Apache-2.0
"""FreePools in YAML: the list `free_pools`."""

from functools import cached_property
from typing import Self
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from bridge.errors import RequestError
from bridge.model.rules.limits import (
    ALWAYS,
    COUNTED,
    EACH,
    TIME,
    Access,
    Bound,
    FreePool,
    Items,
)
from bridge.model.rules.node_set import NodeSet
from bridge.planning.requests.features import parse_features
from bridge.planning.site_rules.validity_text import Valid
from bridge.planning.site_rules.values_text import (
    MAX_NODES,
    Count,
    Name,
    Section,
    all_bounds,
    hostnames,
    items,
)

MAX_ACCESS = 100

MAX_NAMES = 1000
"""Users, accounts or partitions in one list."""


class ChunkSection(BaseModel):
    """What one chunk must ask for; every key is a resource of nodes and its bound."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        stated = self.model_extra or {}
        for what in (TIME, *COUNTED):
            if what in stated:
                raise ValueError(f"{what} is of the whole job: state it beside chunk")
        if not self.bounds:
            raise ValueError("must state a resource and its bound")
        return self

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The same as nouns."""
        return all_bounds(self.model_extra or {})


class AccessSection(BaseModel):
    """Gives access to jobs that meet all of it; any other key is a resource and its bound."""

    model_config = ConfigDict(extra="allow", frozen=True)

    users: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MAX_NAMES, description="Any of these."
    )
    accounts: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MAX_NAMES, description="Any of these."
    )
    partitions: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MAX_NAMES, description="Any of these."
    )
    time: Name | None = Field(
        default=None, description="Bound on the time limit: '< 1h', '<= 2h', '> 12h'."
    )
    chunk: ChunkSection | None = Field(
        default=None,
        description="Bounds on what one chunk requests: {mem: '>= 66g'}; for pools of nodes.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        for what in self.model_extra or {}:
            if what in ("user", "account", "partition"):
                raise ValueError(f"knows {what}s (a list), not {what}")
        if self.access == Access():
            raise ValueError("must state something")
        return self

    @cached_property
    def access(self) -> Access:
        """The same as a noun; read once."""
        stated = dict(self.model_extra or {})
        if self.time is not None:
            stated[TIME] = self.time
        return Access(
            users=None if self.users is None else frozenset(self.users),
            accounts=None if self.accounts is None else frozenset(self.accounts),
            partitions=None if self.partitions is None else frozenset(self.partitions),
            bounds=all_bounds(stated),
            chunk=() if self.chunk is None else self.chunk.bounds,
        )


class NodesSection(Section):
    """A selection of nodes; everything that is stated must match."""

    names: tuple[str, ...] = Field(
        default=(), max_length=MAX_NODES, description="Node names or hostlists."
    )
    features: str = Field(default="", max_length=1000, description="Feature expression: fast&ib.")
    having: Name = Field(default="", description="Resource that the nodes have: gpu.")

    @field_validator("names", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("names")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        hostnames(value)
        return value

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not (self.names or self.features or self.having):
            raise ValueError("must state names, features or having")
        if self.features:
            try:
                parse_features(self.features)
            except RequestError as error:
                raise ValueError(
                    f"features: {error.problem} at character {error.position + 1}"
                ) from error
        return self

    @cached_property
    def hostnames(self) -> tuple[str, ...]:
        """`names`, read."""
        return hostnames(self.names)

    def node_set(self) -> NodeSet:
        """The same as a noun."""
        return NodeSet(self.hostnames, self.features, self.having)


class FreePoolSection(Section):
    """What is kept free for some jobs."""

    name: str = Field(min_length=1, max_length=255, description="Name shown to users.")
    resource: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Resource that is kept free: cpus, mem, gpu, a licence.",
    )
    nodes: NodesSection | None = Field(
        default=None, description="Whole nodes that are kept free, instead of a resource."
    )
    keep: Count = Field(default="all", description="How many: all, 10, 20%, 10/20% (the larger).")
    access: tuple[AccessSection, ...] = Field(
        default=(),
        max_length=MAX_ACCESS,
        description="Which jobs may use it: those that match one item; default: none.",
    )
    valid: Valid = Field(default=None, description="When it is in force; default: always.")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.resource is None) == (self.nodes is None):
            raise ValueError("must name either resource or nodes")
        if self.resource in (EACH, *COUNTED):
            raise ValueError(f"resource: nothing can be kept of '{self.resource}'")
        if self.kept is None:
            raise ValueError("keep: must be a number, a percentage, or all")
        if self.nodes is not None and self.keep != "all":
            raise ValueError("keep: of nodes all are kept; name fewer of them to keep fewer")
        if self.nodes is None and any(access.chunk is not None for access in self.access):
            raise ValueError("access: chunk is for pools of nodes; a resource is kept from jobs")
        return self

    @cached_property
    def kept(self) -> Items | None:
        """`keep`, read; None: unlimited, which is refused."""
        return items(self.keep, self.resource or "")

    def pool(self, zone: ZoneInfo) -> FreePool:
        """The same as a noun."""
        nodes = self.nodes
        return FreePool(
            name=self.name,
            resource=self.resource or "",
            keep=self.kept or Items(),
            access=tuple(access.access for access in self.access),
            validity=ALWAYS if self.valid is None else self.valid.validity(zone),
            nodes=nodes.node_set() if nodes else None,
        )
