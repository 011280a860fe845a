# SPDX-License-Identifier: Apache-2.0
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentReport(_message.Message):
    __slots__ = ("hello", "launcher", "gone", "processes", "mpi", "uses", "shares")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    LAUNCHER_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    MPI_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    hello: AgentHello
    launcher: FromLauncher
    gone: LauncherGone
    processes: Processes
    mpi: MpiTime
    uses: Uses
    shares: SharesInForce
    def __init__(self, hello: _Optional[_Union[AgentHello, _Mapping]] = ..., launcher: _Optional[_Union[FromLauncher, _Mapping]] = ..., gone: _Optional[_Union[LauncherGone, _Mapping]] = ..., processes: _Optional[_Union[Processes, _Mapping]] = ..., mpi: _Optional[_Union[MpiTime, _Mapping]] = ..., uses: _Optional[_Union[Uses, _Mapping]] = ..., shares: _Optional[_Union[SharesInForce, _Mapping]] = ...) -> None: ...

class AgentHello(_message.Message):
    __slots__ = ("version", "nodes", "takes_shares")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TAKES_SHARES_FIELD_NUMBER: _ClassVar[int]
    version: int
    nodes: _containers.RepeatedScalarFieldContainer[str]
    takes_shares: bool
    def __init__(self, version: _Optional[int] = ..., nodes: _Optional[_Iterable[str]] = ..., takes_shares: bool = ...) -> None: ...

class FromLauncher(_message.Message):
    __slots__ = ("connection", "user", "job", "uid", "line")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    connection: int
    user: str
    job: str
    uid: str
    line: str
    def __init__(self, connection: _Optional[int] = ..., user: _Optional[str] = ..., job: _Optional[str] = ..., uid: _Optional[str] = ..., line: _Optional[str] = ...) -> None: ...

class LauncherGone(_message.Message):
    __slots__ = ("connection",)
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    connection: int
    def __init__(self, connection: _Optional[int] = ...) -> None: ...

class Processes(_message.Message):
    __slots__ = ("job", "node", "count", "request")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    job: str
    node: str
    count: int
    request: int
    def __init__(self, job: _Optional[str] = ..., node: _Optional[str] = ..., count: _Optional[int] = ..., request: _Optional[int] = ...) -> None: ...

class MpiTime(_message.Message):
    __slots__ = ("job", "node", "mpi_s", "wall_s", "processes", "estimated")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MPI_S_FIELD_NUMBER: _ClassVar[int]
    WALL_S_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    job: str
    node: str
    mpi_s: float
    wall_s: float
    processes: int
    estimated: bool
    def __init__(self, job: _Optional[str] = ..., node: _Optional[str] = ..., mpi_s: _Optional[float] = ..., wall_s: _Optional[float] = ..., processes: _Optional[int] = ..., estimated: bool = ...) -> None: ...

class Uses(_message.Message):
    __slots__ = ("uses",)
    USES_FIELD_NUMBER: _ClassVar[int]
    uses: _containers.RepeatedCompositeFieldContainer[Use]
    def __init__(self, uses: _Optional[_Iterable[_Union[Use, _Mapping]]] = ...) -> None: ...

class Use(_message.Message):
    __slots__ = ("nodes", "jobs", "ago_ms")
    NODES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    AGO_MS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodePower]
    jobs: _containers.RepeatedCompositeFieldContainer[JobUse]
    ago_ms: int
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodePower, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[JobUse, _Mapping]]] = ..., ago_ms: _Optional[int] = ...) -> None: ...

class NodePower(_message.Message):
    __slots__ = ("node", "watts", "source", "age_ms", "busy_cpus", "cpus", "memory_pressure", "lost_source", "lost_watts")
    NODE_FIELD_NUMBER: _ClassVar[int]
    WATTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    BUSY_CPUS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    LOST_SOURCE_FIELD_NUMBER: _ClassVar[int]
    LOST_WATTS_FIELD_NUMBER: _ClassVar[int]
    node: str
    watts: float
    source: str
    age_ms: int
    busy_cpus: float
    cpus: float
    memory_pressure: float
    lost_source: str
    lost_watts: float
    def __init__(self, node: _Optional[str] = ..., watts: _Optional[float] = ..., source: _Optional[str] = ..., age_ms: _Optional[int] = ..., busy_cpus: _Optional[float] = ..., cpus: _Optional[float] = ..., memory_pressure: _Optional[float] = ..., lost_source: _Optional[str] = ..., lost_watts: _Optional[float] = ...) -> None: ...

class JobUse(_message.Message):
    __slots__ = ("job", "node", "cpus", "memory_mib", "cpu_s", "peak_memory_mib", "memory_pressure", "progress")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    job: str
    node: str
    cpus: float
    memory_mib: int
    cpu_s: float
    peak_memory_mib: int
    memory_pressure: float
    progress: float
    def __init__(self, job: _Optional[str] = ..., node: _Optional[str] = ..., cpus: _Optional[float] = ..., memory_mib: _Optional[int] = ..., cpu_s: _Optional[float] = ..., peak_memory_mib: _Optional[int] = ..., memory_pressure: _Optional[float] = ..., progress: _Optional[float] = ...) -> None: ...

class SharesInForce(_message.Message):
    __slots__ = ("sequence", "shares")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    shares: _containers.RepeatedCompositeFieldContainer[ShareInForce]
    def __init__(self, sequence: _Optional[int] = ..., shares: _Optional[_Iterable[_Union[ShareInForce, _Mapping]]] = ...) -> None: ...

class ShareInForce(_message.Message):
    __slots__ = ("share", "method", "problem", "complete")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    share: Share
    method: str
    problem: str
    complete: bool
    def __init__(self, share: _Optional[_Union[Share, _Mapping]] = ..., method: _Optional[str] = ..., problem: _Optional[str] = ..., complete: bool = ...) -> None: ...

class AgentOrder(_message.Message):
    __slots__ = ("launcher", "count", "welcome", "model", "shares")
    LAUNCHER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    launcher: ToLauncher
    count: CountProcesses
    welcome: Welcome
    model: PowerModel
    shares: Shares
    def __init__(self, launcher: _Optional[_Union[ToLauncher, _Mapping]] = ..., count: _Optional[_Union[CountProcesses, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., model: _Optional[_Union[PowerModel, _Mapping]] = ..., shares: _Optional[_Union[Shares, _Mapping]] = ...) -> None: ...

class Shares(_message.Message):
    __slots__ = ("sequence", "lease_ms", "shares")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    lease_ms: int
    shares: _containers.RepeatedCompositeFieldContainer[Share]
    def __init__(self, sequence: _Optional[int] = ..., lease_ms: _Optional[int] = ..., shares: _Optional[_Iterable[_Union[Share, _Mapping]]] = ...) -> None: ...

class Share(_message.Message):
    __slots__ = ("job", "node", "milli_cpus", "weight", "guest")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MILLI_CPUS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    GUEST_FIELD_NUMBER: _ClassVar[int]
    job: str
    node: str
    milli_cpus: int
    weight: int
    guest: bool
    def __init__(self, job: _Optional[str] = ..., node: _Optional[str] = ..., milli_cpus: _Optional[int] = ..., weight: _Optional[int] = ..., guest: bool = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("takes_use",)
    TAKES_USE_FIELD_NUMBER: _ClassVar[int]
    takes_use: bool
    def __init__(self, takes_use: bool = ...) -> None: ...

class PowerModel(_message.Message):
    __slots__ = ("node", "idle_w", "max_w")
    NODE_FIELD_NUMBER: _ClassVar[int]
    IDLE_W_FIELD_NUMBER: _ClassVar[int]
    MAX_W_FIELD_NUMBER: _ClassVar[int]
    node: str
    idle_w: int
    max_w: int
    def __init__(self, node: _Optional[str] = ..., idle_w: _Optional[int] = ..., max_w: _Optional[int] = ...) -> None: ...

class ToLauncher(_message.Message):
    __slots__ = ("connection", "line")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    connection: int
    line: str
    def __init__(self, connection: _Optional[int] = ..., line: _Optional[str] = ...) -> None: ...

class CountProcesses(_message.Message):
    __slots__ = ("job", "node", "uid", "request")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    job: str
    node: str
    uid: int
    request: int
    def __init__(self, job: _Optional[str] = ..., node: _Optional[str] = ..., uid: _Optional[int] = ..., request: _Optional[int] = ...) -> None: ...
