# SPDX-License-Identifier: Apache-2.0
"""The service's configuration file: its keys, and the errors in it.

Rules
    1. An empty file is a working configuration on a machine with Slurm.
    2. Unknown keys, wrong types and impossible values are refused: every problem is one line of
       file, key and reason, and all of them are shown at once.
    3. Nothing here reads the machine; the service checks whether users and directories exist.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bridge import extension_packages, files, yaml_text
from bridge.errors import ConfigError
from bridge.input_problems import ConfigProblems, problems_of
from bridge.model.policy import PolicySpec
from bridge.planning.site_rules.rules_text import PlanningSection
from bridge.policies.catalogue import DEFAULT
from bridge.registry import PRESETS, describe, for_live, parse_policy
from bridge.service import default_sockets

MAX_USERS = 1000
"""Users or certificates in one list."""

"""Errors that are listed; the others are counted."""

MAX_SOCKET_PATH = 107
"""Longest path of a Unix socket that Linux accepts, in bytes."""


def _socket_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("must be an absolute path")
    if len(bytes(path)) > MAX_SOCKET_PATH:
        raise ValueError(f"longer than the {MAX_SOCKET_PATH} bytes a socket's path may have")
    return path


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be HOST:PORT")
    return text


SocketPath = Annotated[Path, AfterValidator(_socket_path)]
Address = Annotated[str, AfterValidator(_address)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TlsSection(_Section):
    """Where controllers on other machines connect: TCP with mutual TLS."""

    address: Address = Field(description="HOST:PORT to listen at.")
    ca: Path = Field(description="PEM file of the authority that signs the callers' certificates.")
    cert: Path = Field(description="PEM file of the service's own certificate.")
    key: Path = Field(description="PEM file of its private key.")
    subjects: tuple[str, ...] = Field(
        min_length=1,
        max_length=MAX_USERS,
        description="Common names or DNS alternative names of the controllers that may connect.",
    )
    revoked: Path | None = Field(
        default=None,
        description="File with serial numbers or SHA-256 fingerprints of certificates that may not "
        "connect, one per line; read again when it changes. Default: none.",
    )


class ControllerSection(_Section):
    """Where slurmctld's plugin connects, and which users may."""

    socket: SocketPath = Field(
        default=default_sockets.CONTROLLER,
        description="Unix socket; its directory must be closed to everybody else (mode 0700).",
    )
    users: tuple[str | int, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_USERS,
        description="Users that may connect, by name or number. Default: slurm (if it exists), "
        "root, and the user the service runs as.",
    )
    retry_s: int = Field(
        default=30,
        ge=1,
        le=86_400,
        description="Seconds until a start that the controller refused is tried again, if nothing "
        "changed before.",
    )
    tls: TlsSection | None = Field(
        default=None, description="Also listen on TCP, with mutual TLS. Default: no."
    )


class OperatorSection(_Section):
    """Where `schedbridge status`, `plan`, `explain` and `policy` connect."""

    socket: SocketPath = Field(
        default=default_sockets.OPERATOR,
        description="Unix socket; any user of the machine may read.",
    )
    admins: tuple[str | int, ...] = Field(
        default=(),
        max_length=MAX_USERS,
        description="Users that may change the policy and the corridor of power, besides root and "
        "the user the service runs as.",
    )


class TopologySection(_Section):
    """The network switches. `topology: FILE` is short for the file alone."""

    file: Path | None = Field(
        default=None,
        description="The cluster's topology.conf, for --switches, fabrics, and place policies that "
        "use switches; null: switches are unknown.",
    )
    wait_s: int = Field(
        default=0,
        ge=0,
        le=31_536_000,
        description="Maximum time, s, that a job of several nodes without --switches waits for the "
        "least number of leaf switches that could hold it; 0: no job waits.",
    )

    @model_validator(mode="after")
    def _switches_known(self) -> Self:
        if self.wait_s and self.file is None:
            raise ValueError("wait_s needs the file that describes the switches")
        return self


class AgentsSection(TlsSection):
    """Where the agents of the nodes (`schedbridge agent`) connect: TCP with mutual TLS."""

    subjects: tuple[str, ...] = Field(
        default=("schedbridge-agent",),
        min_length=1,
        max_length=MAX_USERS,
        description="Common names or DNS alternative names of the agents' certificates. All agents "
        "may share one.",
    )
    each_node: bool = Field(
        default=False,
        description="Every node has its own certificate, valid for the nodes in its common name "
        "and DNS alternative names. Certificates of `subjects` are valid for any node.",
    )


class ResizingSection(_Section):
    """How resizes of running jobs are carried out: time limits of the steps, s."""

    grant_s: int = Field(
        default=30, ge=1, le=3600, description="For the controller to grant new nodes."
    )
    add_s: int = Field(
        default=120, ge=1, le=86_400, description="For the application to join new processes."
    )
    grace_s: int = Field(
        default=60, ge=1, le=86_400, description="For the application to leave nodes."
    )
    vacate_s: int = Field(
        default=30, ge=1, le=3600, description="For the job's processes on these nodes to end."
    )
    release_s: int = Field(
        default=30, ge=1, le=3600, description="For the controller to take the nodes back."
    )
    withdraw_s: int = Field(
        default=30, ge=1, le=3600, description="For the launcher to answer a withdrawal."
    )
    rest_s: int = Field(
        default=60, ge=0, le=86_400,
        description="Time for which a job keeps its nodes after a failed resize.",
    )  # fmt: skip
    trust_launchers: bool = Field(
        default=False,
        description="Take back a node without an agent if the job's launcher says that it is "
        "vacant. By default such a node stays with the job, and no job grows onto it.",
    )


def _loopback(text: str) -> str:
    host = _address(text).rpartition(":")[0].strip("[]")
    if host not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError(
            "must be a loopback address such as 127.0.0.1:9619; put a TLS proxy in front of it"
        )
    return text


class EventsSection(_Section):
    """Events of demand response over HTTP, in the form of OpenADR 3."""

    address: Annotated[str, AfterValidator(_loopback)] = Field(
        description="HOST:PORT to listen at, on the loopback interface."
    )
    token_file: Path = Field(
        description="File of root or the service's user, mode 0600, that holds the bearer token of "
        "callers; read again when it changes."
    )


class PowerSignalsSection(_Section):
    """Signals that bound system power, and the maximum age of measured power; see docs/POWER.md."""

    signal_file: Path | None = Field(
        default=None,
        description="JSON file with bounds of system power; read again when it changes; null: "
        "none.",
    )
    events: EventsSection | None = Field(
        default=None,
        description="Events of demand response over HTTP (OpenADR 3); null: none are taken.",
    )
    stale_s: int = Field(
        default=30,
        ge=10,
        le=3600,
        description="Measured powers older than this, s, are replaced by the bounds of the node's "
        "type.",
    )


class MetricsSection(_Section):
    """Prometheus metrics."""

    address: Address | None = Field(
        default="127.0.0.1:9618", description="HOST:PORT of the page /metrics; null: off."
    )


class MemorySection(_Section):
    """What survives a restart: announced starts and their accuracy."""

    path: Path | None = Field(
        default=Path("/var/lib/schedbridge/memory.sqlite"),
        description="SQLite file; null: nothing survives a restart.",
    )
    keep_days: int = Field(
        default=90,
        ge=1,
        le=3650,
        description="Days for which the accuracy of announced starts is kept "
        "(`schedbridge accuracy`).",
    )


class LogSection(_Section):
    """The service's log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest severity that is logged."
    )
    format: Literal["text", "json"] = Field(
        default="text", description="Plain text, or one JSON object per line."
    )


class LimitsSection(_Section):
    """Bounds that protect service and controller."""

    message_mib: int = Field(
        default=256, ge=1, le=1024, description="Maximum size of a message, MiB."
    )
    decisions: int = Field(
        default=20_000,
        ge=100,
        le=1_000_000,
        description="Maximum number of decisions in one reply; the rest follow in the next.",
    )
    connections_per_user: int = Field(
        default=256,
        ge=1,
        le=1000,
        description="Maximum number of connections of one user to `operator.socket`.",
    )


class ServiceConfig(_Section):
    """Configuration of `schedbridge serve`."""

    controller: ControllerSection = Field(default_factory=ControllerSection)
    operator: OperatorSection = Field(default_factory=OperatorSection)
    agents: AgentsSection | None = Field(
        default=None, description="Agents on the nodes; without them no running job is resized."
    )
    resizing: ResizingSection = Field(default_factory=ResizingSection)
    policy: Any = Field(
        default=DEFAULT,
        description=f"A preset ({', '.join(PRESETS)}) or a mapping of stages, see below.",
    )
    topology: TopologySection = Field(default_factory=TopologySection)
    planning: PlanningSection = Field(default_factory=PlanningSection)
    power: PowerSignalsSection = Field(default_factory=PowerSignalsSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    memory: MemorySection = Field(default_factory=MemorySection)
    log: LogSection = Field(default_factory=LogSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)

    @property
    def policy_spec(self) -> PolicySpec:
        """The policy, parsed."""
        return parse_policy(self.policy)

    @field_validator(
        "controller",
        "operator",
        "resizing",
        "planning",
        "power",
        "metrics",
        "memory",
        "log",
        "limits",
        mode="before",
    )
    @classmethod
    def _empty_section(cls, value: Any) -> Any:
        return {} if value is None else value  # "metrics:" with nothing below it

    @field_validator("topology", mode="before")
    @classmethod
    def _file_alone(cls, value: Any) -> Any:
        return value if isinstance(value, dict | TopologySection) else {"file": value}

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, value: Any) -> Any:
        try:
            for_live(parse_policy(value))
        except ConfigError as error:
            raise PydanticCustomError(
                "policy", "{problem}", {"key": error.key, "problem": error.problem}
            ) from error
        return value

    @model_validator(mode="after")
    def _sockets_differ(self) -> Self:
        if self.controller.socket == self.operator.socket:
            raise ValueError("controller.socket and operator.socket must differ")
        if self.controller.socket.parent == self.operator.socket.parent:
            raise ValueError(
                "controller.socket and operator.socket must lie in different directories: one is "
                "closed to ordinary users, the other open"
            )
        return self


def load(path: Path) -> ServiceConfig:
    """Reads a configuration file.

    Raises:
        ConfigError: the file is missing or not YAML.
        ConfigProblems: it has invalid keys or values.
    """
    try:
        text = files.read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigError("", "is not a text file (UTF-8)", file=str(path)) from error
    except OSError as error:
        raise ConfigError("", error.strerror or str(error), file=str(path)) from error
    return parse(text, file=str(path))


def parse(text: str, file: str) -> ServiceConfig:
    """Reads a configuration from its text.

    Raises:
        ConfigError: it is not YAML.
        ConfigProblems: it has invalid keys or values.
    """
    try:
        data = yaml_text.load(text)
    except yaml_text.NoYaml as error:
        raise ConfigError(error.where, f"invalid YAML: {error.problem}", file=file) from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError("", "must be a mapping of sections, e.g. 'policy: easy'", file=file)
    try:
        return ServiceConfig.model_validate(data)
    except ValidationError as error:
        found = problems_of(error, ServiceConfig, file=file)
        raise ConfigProblems([_hinted(each) for each in found]) from error


def _hinted(problem: ConfigError) -> ConfigError:
    """An unknown section of `planning` may be that of an extension that is left out."""
    if problem.key.rpartition(".")[0] != "planning" or not problem.problem.startswith("unknown"):
        return problem
    text = problem.problem + extension_packages.hint()
    return ConfigError(problem.key, text, file=problem.file)


def to_mapping(config: ServiceConfig) -> dict[str, Any]:
    """The configuration with all defaults, as plain values."""
    mapping = config.model_dump(mode="json", by_alias=True)
    mapping["policy"] = describe(config.policy_spec)
    return mapping
