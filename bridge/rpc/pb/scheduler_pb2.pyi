# SPDX-License-Identifier: Apache-2.0
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_COMPLETING: _ClassVar[JobState]

class Hold(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOLD_NONE: _ClassVar[Hold]
    HOLD_HELD: _ClassVar[Hold]
    HOLD_DEPENDENCY: _ClassVar[Hold]
    HOLD_BEGIN_TIME: _ClassVar[Hold]
    HOLD_LIMIT: _ClassVar[Hold]
    HOLD_ARRAY_LIMIT: _ClassVar[Hold]
    HOLD_PARTITION: _ClassVar[Hold]
    HOLD_RESERVATION: _ClassVar[Hold]
    HOLD_OTHER: _ClassVar[Hold]

class Ending(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENDING_UNSPECIFIED: _ClassVar[Ending]
    ENDING_COMPLETED: _ClassVar[Ending]
    ENDING_FAILED: _ClassVar[Ending]
    ENDING_TIMEOUT: _ClassVar[Ending]
    ENDING_CANCELLED: _ClassVar[Ending]
    ENDING_LOST: _ClassVar[Ending]

class Coschedule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COSCHEDULE_UNSPECIFIED: _ClassVar[Coschedule]
    COSCHEDULE_HOST: _ClassVar[Coschedule]
    COSCHEDULE_GUEST: _ClassVar[Coschedule]
    COSCHEDULE_BOTH: _ClassVar[Coschedule]
    COSCHEDULE_NEVER: _ClassVar[Coschedule]

class ReasonCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[ReasonCode]
    REASON_RESOURCES: _ClassVar[ReasonCode]
    REASON_PRIORITY: _ClassVar[ReasonCode]
    REASON_LICENCES: _ClassVar[ReasonCode]
    REASON_RESERVATION: _ClassVar[ReasonCode]
    REASON_BEGIN_TIME: _ClassVar[ReasonCode]
    REASON_HELD: _ClassVar[ReasonCode]
    REASON_DEPENDENCY: _ClassVar[ReasonCode]
    REASON_LIMIT: _ClassVar[ReasonCode]
    REASON_ARRAY_LIMIT: _ClassVar[ReasonCode]
    REASON_PARTITION: _ClassVar[ReasonCode]
    REASON_NEVER: _ClassVar[ReasonCode]
    REASON_BAD_REQUEST: _ClassVar[ReasonCode]
    REASON_REFUSED: _ClassVar[ReasonCode]
    REASON_OTHER: _ClassVar[ReasonCode]
    REASON_MAINTENANCE: _ClassVar[ReasonCode]
    REASON_NODES_DOWN: _ClassVar[ReasonCode]
    REASON_POWER: _ClassVar[ReasonCode]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_APPLIED: _ClassVar[Outcome]
    OUTCOME_STALE: _ClassVar[Outcome]
    OUTCOME_REFUSED: _ClassVar[Outcome]
    OUTCOME_INVALID: _ClassVar[Outcome]
    OUTCOME_BUSY: _ClassVar[Outcome]
    OUTCOME_LIMITED: _ClassVar[Outcome]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_COMPLETING: JobState
HOLD_NONE: Hold
HOLD_HELD: Hold
HOLD_DEPENDENCY: Hold
HOLD_BEGIN_TIME: Hold
HOLD_LIMIT: Hold
HOLD_ARRAY_LIMIT: Hold
HOLD_PARTITION: Hold
HOLD_RESERVATION: Hold
HOLD_OTHER: Hold
ENDING_UNSPECIFIED: Ending
ENDING_COMPLETED: Ending
ENDING_FAILED: Ending
ENDING_TIMEOUT: Ending
ENDING_CANCELLED: Ending
ENDING_LOST: Ending
COSCHEDULE_UNSPECIFIED: Coschedule
COSCHEDULE_HOST: Coschedule
COSCHEDULE_GUEST: Coschedule
COSCHEDULE_BOTH: Coschedule
COSCHEDULE_NEVER: Coschedule
REASON_UNSPECIFIED: ReasonCode
REASON_RESOURCES: ReasonCode
REASON_PRIORITY: ReasonCode
REASON_LICENCES: ReasonCode
REASON_RESERVATION: ReasonCode
REASON_BEGIN_TIME: ReasonCode
REASON_HELD: ReasonCode
REASON_DEPENDENCY: ReasonCode
REASON_LIMIT: ReasonCode
REASON_ARRAY_LIMIT: ReasonCode
REASON_PARTITION: ReasonCode
REASON_NEVER: ReasonCode
REASON_BAD_REQUEST: ReasonCode
REASON_REFUSED: ReasonCode
REASON_OTHER: ReasonCode
REASON_MAINTENANCE: ReasonCode
REASON_NODES_DOWN: ReasonCode
REASON_POWER: ReasonCode
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_APPLIED: Outcome
OUTCOME_STALE: Outcome
OUTCOME_REFUSED: Outcome
OUTCOME_INVALID: Outcome
OUTCOME_BUSY: Outcome
OUTCOME_LIMITED: Outcome

class HelloRequest(_message.Message):
    __slots__ = ("wire_version", "controller", "epoch", "cluster", "features", "memory_consumable", "whole_cores", "memory_optional", "dialect")
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_CONSUMABLE_FIELD_NUMBER: _ClassVar[int]
    WHOLE_CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    wire_version: int
    controller: str
    epoch: int
    cluster: str
    features: _containers.RepeatedScalarFieldContainer[str]
    memory_consumable: bool
    whole_cores: bool
    memory_optional: bool
    dialect: str
    def __init__(self, wire_version: _Optional[int] = ..., controller: _Optional[str] = ..., epoch: _Optional[int] = ..., cluster: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., memory_consumable: bool = ..., whole_cores: bool = ..., memory_optional: bool = ..., dialect: _Optional[str] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("wire_version", "service", "service_epoch", "features", "policy")
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    wire_version: int
    service: str
    service_epoch: int
    features: _containers.RepeatedScalarFieldContainer[str]
    policy: str
    def __init__(self, wire_version: _Optional[int] = ..., service: _Optional[str] = ..., service_epoch: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., policy: _Optional[str] = ...) -> None: ...

class CycleRequest(_message.Message):
    __slots__ = ("epoch", "generation", "base_generation", "now_s", "jobs", "removed_jobs", "nodes", "removed_nodes", "partitions", "reservations", "licences", "fates", "status", "ended")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    BASE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_JOBS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NODES_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    FATES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    generation: int
    base_generation: int
    now_s: int
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    removed_jobs: _containers.RepeatedScalarFieldContainer[str]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    removed_nodes: _containers.RepeatedScalarFieldContainer[str]
    partitions: Partitions
    reservations: Reservations
    licences: Licences
    fates: _containers.RepeatedCompositeFieldContainer[Fate]
    status: ControllerStatus
    ended: _containers.RepeatedCompositeFieldContainer[EndedJob]
    def __init__(self, epoch: _Optional[int] = ..., generation: _Optional[int] = ..., base_generation: _Optional[int] = ..., now_s: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., removed_jobs: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., removed_nodes: _Optional[_Iterable[str]] = ..., partitions: _Optional[_Union[Partitions, _Mapping]] = ..., reservations: _Optional[_Union[Reservations, _Mapping]] = ..., licences: _Optional[_Union[Licences, _Mapping]] = ..., fates: _Optional[_Iterable[_Union[Fate, _Mapping]]] = ..., status: _Optional[_Union[ControllerStatus, _Mapping]] = ..., ended: _Optional[_Iterable[_Union[EndedJob, _Mapping]]] = ...) -> None: ...

class CycleReply(_message.Message):
    __slots__ = ("need_full", "generation", "decisions", "wake_after_s", "service_epoch", "wake_after_ms")
    NEED_FULL_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    WAKE_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    SERVICE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WAKE_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    need_full: bool
    generation: int
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    wake_after_s: int
    service_epoch: int
    wake_after_ms: int
    def __init__(self, need_full: bool = ..., generation: _Optional[int] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., wake_after_s: _Optional[int] = ..., service_epoch: _Optional[int] = ..., wake_after_ms: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("name", "cpus", "threads_per_core", "memory_mib", "gres", "features", "usable", "state", "weight", "power_saving", "off", "resume_s", "ready_s", "idle_since_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    THREADS_PER_CORE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GRES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    USABLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    POWER_SAVING_FIELD_NUMBER: _ClassVar[int]
    OFF_FIELD_NUMBER: _ClassVar[int]
    RESUME_S_FIELD_NUMBER: _ClassVar[int]
    READY_S_FIELD_NUMBER: _ClassVar[int]
    IDLE_SINCE_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    cpus: int
    threads_per_core: int
    memory_mib: int
    gres: _containers.RepeatedCompositeFieldContainer[Gres]
    features: _containers.RepeatedScalarFieldContainer[str]
    usable: bool
    state: str
    weight: int
    power_saving: bool
    off: bool
    resume_s: int
    ready_s: int
    idle_since_s: int
    def __init__(self, name: _Optional[str] = ..., cpus: _Optional[int] = ..., threads_per_core: _Optional[int] = ..., memory_mib: _Optional[int] = ..., gres: _Optional[_Iterable[_Union[Gres, _Mapping]]] = ..., features: _Optional[_Iterable[str]] = ..., usable: bool = ..., state: _Optional[str] = ..., weight: _Optional[int] = ..., power_saving: bool = ..., off: bool = ..., resume_s: _Optional[int] = ..., ready_s: _Optional[int] = ..., idle_since_s: _Optional[int] = ...) -> None: ...

class Gres(_message.Message):
    __slots__ = ("name", "count", "no_consume")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NO_CONSUME_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    no_consume: bool
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., no_consume: bool = ...) -> None: ...

class EndedJob(_message.Message):
    __slots__ = ("id", "name", "user", "start_s", "end_s", "time_limit_s", "ending")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    user: str
    start_s: int
    end_s: int
    time_limit_s: int
    ending: Ending
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., user: _Optional[str] = ..., start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., time_limit_s: _Optional[int] = ..., ending: _Optional[_Union[Ending, str]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("id", "version", "state", "name", "user", "account", "qos", "priority", "submit_s", "eligible_s", "begin_s", "time_limit_s", "hold", "hold_text", "request", "array_tasks", "array_startable", "allocation", "deadline_s", "min_time_s", "coschedule", "max_slowdown_permille", "requeue", "host_job_id", "share_of", "share_ppm", "share_usage", "share_cost", "hosted_s", "hosted_since_s", "extended_s", "extendable", "rigid")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_S_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_S_FIELD_NUMBER: _ClassVar[int]
    BEGIN_S_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    HOLD_TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ARRAY_TASKS_FIELD_NUMBER: _ClassVar[int]
    ARRAY_STARTABLE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    MIN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    COSCHEDULE_FIELD_NUMBER: _ClassVar[int]
    MAX_SLOWDOWN_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_FIELD_NUMBER: _ClassVar[int]
    HOST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SHARE_OF_FIELD_NUMBER: _ClassVar[int]
    SHARE_PPM_FIELD_NUMBER: _ClassVar[int]
    SHARE_USAGE_FIELD_NUMBER: _ClassVar[int]
    SHARE_COST_FIELD_NUMBER: _ClassVar[int]
    HOSTED_S_FIELD_NUMBER: _ClassVar[int]
    HOSTED_SINCE_S_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_S_FIELD_NUMBER: _ClassVar[int]
    EXTENDABLE_FIELD_NUMBER: _ClassVar[int]
    RIGID_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    state: JobState
    name: str
    user: str
    account: str
    qos: str
    priority: int
    submit_s: int
    eligible_s: int
    begin_s: int
    time_limit_s: int
    hold: Hold
    hold_text: str
    request: Request
    array_tasks: int
    array_startable: int
    allocation: Allocation
    deadline_s: int
    min_time_s: int
    coschedule: Coschedule
    max_slowdown_permille: int
    requeue: bool
    host_job_id: str
    share_of: str
    share_ppm: int
    share_usage: int
    share_cost: int
    hosted_s: int
    hosted_since_s: int
    extended_s: int
    extendable: bool
    rigid: bool
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., state: _Optional[_Union[JobState, str]] = ..., name: _Optional[str] = ..., user: _Optional[str] = ..., account: _Optional[str] = ..., qos: _Optional[str] = ..., priority: _Optional[int] = ..., submit_s: _Optional[int] = ..., eligible_s: _Optional[int] = ..., begin_s: _Optional[int] = ..., time_limit_s: _Optional[int] = ..., hold: _Optional[_Union[Hold, str]] = ..., hold_text: _Optional[str] = ..., request: _Optional[_Union[Request, _Mapping]] = ..., array_tasks: _Optional[int] = ..., array_startable: _Optional[int] = ..., allocation: _Optional[_Union[Allocation, _Mapping]] = ..., deadline_s: _Optional[int] = ..., min_time_s: _Optional[int] = ..., coschedule: _Optional[_Union[Coschedule, str]] = ..., max_slowdown_permille: _Optional[int] = ..., requeue: bool = ..., host_job_id: _Optional[str] = ..., share_of: _Optional[str] = ..., share_ppm: _Optional[int] = ..., share_usage: _Optional[int] = ..., share_cost: _Optional[int] = ..., hosted_s: _Optional[int] = ..., hosted_since_s: _Optional[int] = ..., extended_s: _Optional[int] = ..., extendable: bool = ..., rigid: bool = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("partitions", "min_nodes", "max_nodes", "tasks", "cpus_per_task", "tasks_per_node", "min_cpus", "min_cpus_per_node", "memory_per_node_mib", "memory_per_cpu_mib", "gres_per_node", "exclusive", "features", "required_nodes", "excluded_nodes", "licences", "reservation", "contiguous", "malleable", "chunks", "fixed_start", "switches", "switches_wait_s", "controller_chooses", "no_place")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MIN_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CPUS_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    TASKS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    MIN_CPUS_FIELD_NUMBER: _ClassVar[int]
    MIN_CPUS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PER_NODE_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PER_CPU_MIB_FIELD_NUMBER: _ClassVar[int]
    GRES_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_NODES_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_NODES_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    CONTIGUOUS_FIELD_NUMBER: _ClassVar[int]
    MALLEABLE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    FIXED_START_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_WAIT_S_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_CHOOSES_FIELD_NUMBER: _ClassVar[int]
    NO_PLACE_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedScalarFieldContainer[str]
    min_nodes: int
    max_nodes: int
    tasks: int
    cpus_per_task: int
    tasks_per_node: int
    min_cpus: int
    min_cpus_per_node: int
    memory_per_node_mib: int
    memory_per_cpu_mib: int
    gres_per_node: _containers.RepeatedCompositeFieldContainer[Gres]
    exclusive: bool
    features: str
    required_nodes: str
    excluded_nodes: str
    licences: _containers.RepeatedCompositeFieldContainer[LicenceUse]
    reservation: str
    contiguous: bool
    malleable: Malleable
    chunks: Chunks
    fixed_start: bool
    switches: int
    switches_wait_s: int
    controller_chooses: bool
    no_place: bool
    def __init__(self, partitions: _Optional[_Iterable[str]] = ..., min_nodes: _Optional[int] = ..., max_nodes: _Optional[int] = ..., tasks: _Optional[int] = ..., cpus_per_task: _Optional[int] = ..., tasks_per_node: _Optional[int] = ..., min_cpus: _Optional[int] = ..., min_cpus_per_node: _Optional[int] = ..., memory_per_node_mib: _Optional[int] = ..., memory_per_cpu_mib: _Optional[int] = ..., gres_per_node: _Optional[_Iterable[_Union[Gres, _Mapping]]] = ..., exclusive: bool = ..., features: _Optional[str] = ..., required_nodes: _Optional[str] = ..., excluded_nodes: _Optional[str] = ..., licences: _Optional[_Iterable[_Union[LicenceUse, _Mapping]]] = ..., reservation: _Optional[str] = ..., contiguous: bool = ..., malleable: _Optional[_Union[Malleable, _Mapping]] = ..., chunks: _Optional[_Union[Chunks, _Mapping]] = ..., fixed_start: bool = ..., switches: _Optional[int] = ..., switches_wait_s: _Optional[int] = ..., controller_chooses: bool = ..., no_place: bool = ...) -> None: ...

class Chunks(_message.Message):
    __slots__ = ("chunks", "place")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    chunks: str
    place: str
    def __init__(self, chunks: _Optional[str] = ..., place: _Optional[str] = ...) -> None: ...

class Malleable(_message.Message):
    __slots__ = ("min_nodes", "max_nodes", "node_constraint", "min_power_w", "max_power_w", "no_resize", "moldable", "min_start")
    MIN_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_POWER_W_FIELD_NUMBER: _ClassVar[int]
    MAX_POWER_W_FIELD_NUMBER: _ClassVar[int]
    NO_RESIZE_FIELD_NUMBER: _ClassVar[int]
    MOLDABLE_FIELD_NUMBER: _ClassVar[int]
    MIN_START_FIELD_NUMBER: _ClassVar[int]
    min_nodes: int
    max_nodes: int
    node_constraint: str
    min_power_w: int
    max_power_w: int
    no_resize: bool
    moldable: bool
    min_start: int
    def __init__(self, min_nodes: _Optional[int] = ..., max_nodes: _Optional[int] = ..., node_constraint: _Optional[str] = ..., min_power_w: _Optional[int] = ..., max_power_w: _Optional[int] = ..., no_resize: bool = ..., moldable: bool = ..., min_start: _Optional[int] = ...) -> None: ...

class LicenceUse(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Allocation(_message.Message):
    __slots__ = ("start_s", "end_s", "partition", "uses", "exclusive", "licences", "adapting", "head", "number", "min_power_w", "max_power_w")
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    ADAPTING_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MIN_POWER_W_FIELD_NUMBER: _ClassVar[int]
    MAX_POWER_W_FIELD_NUMBER: _ClassVar[int]
    start_s: int
    end_s: int
    partition: str
    uses: _containers.RepeatedCompositeFieldContainer[NodeUse]
    exclusive: bool
    licences: _containers.RepeatedCompositeFieldContainer[LicenceUse]
    adapting: bool
    head: str
    number: int
    min_power_w: int
    max_power_w: int
    def __init__(self, start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., partition: _Optional[str] = ..., uses: _Optional[_Iterable[_Union[NodeUse, _Mapping]]] = ..., exclusive: bool = ..., licences: _Optional[_Iterable[_Union[LicenceUse, _Mapping]]] = ..., adapting: bool = ..., head: _Optional[str] = ..., number: _Optional[int] = ..., min_power_w: _Optional[int] = ..., max_power_w: _Optional[int] = ...) -> None: ...

class NodeUse(_message.Message):
    __slots__ = ("nodes", "cpus", "memory_mib", "gres", "until_s")
    NODES_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GRES_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    nodes: str
    cpus: int
    memory_mib: int
    gres: _containers.RepeatedCompositeFieldContainer[Gres]
    until_s: int
    def __init__(self, nodes: _Optional[str] = ..., cpus: _Optional[int] = ..., memory_mib: _Optional[int] = ..., gres: _Optional[_Iterable[_Union[Gres, _Mapping]]] = ..., until_s: _Optional[int] = ...) -> None: ...

class Partitions(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Partition]
    def __init__(self, items: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("name", "nodes", "up", "min_nodes", "max_nodes", "max_time_s", "default_time_s", "exclusive", "priority_tier", "shared")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    MIN_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_TIME_S_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_TIER_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    name: str
    nodes: str
    up: bool
    min_nodes: int
    max_nodes: int
    max_time_s: int
    default_time_s: int
    exclusive: bool
    priority_tier: int
    shared: bool
    def __init__(self, name: _Optional[str] = ..., nodes: _Optional[str] = ..., up: bool = ..., min_nodes: _Optional[int] = ..., max_nodes: _Optional[int] = ..., max_time_s: _Optional[int] = ..., default_time_s: _Optional[int] = ..., exclusive: bool = ..., priority_tier: _Optional[int] = ..., shared: bool = ...) -> None: ...

class Reservations(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Reservation]
    def __init__(self, items: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("name", "start_s", "end_s", "nodes", "licences", "maintenance")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    MAINTENANCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    start_s: int
    end_s: int
    nodes: str
    licences: _containers.RepeatedCompositeFieldContainer[LicenceUse]
    maintenance: bool
    def __init__(self, name: _Optional[str] = ..., start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., nodes: _Optional[str] = ..., licences: _Optional[_Iterable[_Union[LicenceUse, _Mapping]]] = ..., maintenance: bool = ...) -> None: ...

class Licences(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Licence]
    def __init__(self, items: _Optional[_Iterable[_Union[Licence, _Mapping]]] = ...) -> None: ...

class Licence(_message.Message):
    __slots__ = ("name", "total", "used_elsewhere")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    USED_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    name: str
    total: int
    used_elsewhere: int
    def __init__(self, name: _Optional[str] = ..., total: _Optional[int] = ..., used_elsewhere: _Optional[int] = ...) -> None: ...

class ControllerStatus(_message.Message):
    __slots__ = ("fallbacks", "fallback_s", "fallback_reason", "lock_ms_max", "round_trip_ms")
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_S_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_REASON_FIELD_NUMBER: _ClassVar[int]
    LOCK_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_MS_FIELD_NUMBER: _ClassVar[int]
    fallbacks: int
    fallback_s: float
    fallback_reason: str
    lock_ms_max: float
    round_trip_ms: float
    def __init__(self, fallbacks: _Optional[int] = ..., fallback_s: _Optional[float] = ..., fallback_reason: _Optional[str] = ..., lock_ms_max: _Optional[float] = ..., round_trip_ms: _Optional[float] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("id", "job_id", "job_version", "start", "planned_start", "pending", "resize", "quota", "reserve", "unreserve", "progress", "power", "requeue", "extend")
    ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    PLANNED_START_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIELD_NUMBER: _ClassVar[int]
    UNRESERVE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    POWER_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    id: int
    job_id: str
    job_version: int
    start: Start
    planned_start: PlannedStart
    pending: Pending
    resize: Resize
    quota: Quota
    reserve: Reserve
    unreserve: Unreserve
    progress: Progress
    power: Power
    requeue: Requeue
    extend: Extend
    def __init__(self, id: _Optional[int] = ..., job_id: _Optional[str] = ..., job_version: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., planned_start: _Optional[_Union[PlannedStart, _Mapping]] = ..., pending: _Optional[_Union[Pending, _Mapping]] = ..., resize: _Optional[_Union[Resize, _Mapping]] = ..., quota: _Optional[_Union[Quota, _Mapping]] = ..., reserve: _Optional[_Union[Reserve, _Mapping]] = ..., unreserve: _Optional[_Union[Unreserve, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., power: _Optional[_Union[Power, _Mapping]] = ..., requeue: _Optional[_Union[Requeue, _Mapping]] = ..., extend: _Optional[_Union[Extend, _Mapping]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("nodes", "partition", "tasks", "uses", "choice", "time_limit_s", "host_job_id")
    NODES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    HOST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    nodes: str
    partition: str
    tasks: _containers.RepeatedScalarFieldContainer[int]
    uses: _containers.RepeatedCompositeFieldContainer[NodeUse]
    choice: str
    time_limit_s: int
    host_job_id: str
    def __init__(self, nodes: _Optional[str] = ..., partition: _Optional[str] = ..., tasks: _Optional[_Iterable[int]] = ..., uses: _Optional[_Iterable[_Union[NodeUse, _Mapping]]] = ..., choice: _Optional[str] = ..., time_limit_s: _Optional[int] = ..., host_job_id: _Optional[str] = ...) -> None: ...

class PlannedStart(_message.Message):
    __slots__ = ("start_s", "nodes", "partition", "reason")
    START_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    start_s: int
    nodes: str
    partition: str
    reason: Pending
    def __init__(self, start_s: _Optional[int] = ..., nodes: _Optional[str] = ..., partition: _Optional[str] = ..., reason: _Optional[_Union[Pending, _Mapping]] = ...) -> None: ...

class Pending(_message.Message):
    __slots__ = ("code", "text")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    code: ReasonCode
    text: str
    def __init__(self, code: _Optional[_Union[ReasonCode, str]] = ..., text: _Optional[str] = ...) -> None: ...

class Reserve(_message.Message):
    __slots__ = ("name", "start_s", "end_s", "nodes", "partition", "users", "accounts", "licences")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    start_s: int
    end_s: int
    nodes: str
    partition: str
    users: str
    accounts: str
    licences: str
    def __init__(self, name: _Optional[str] = ..., start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., nodes: _Optional[str] = ..., partition: _Optional[str] = ..., users: _Optional[str] = ..., accounts: _Optional[str] = ..., licences: _Optional[str] = ...) -> None: ...

class Unreserve(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Resize(_message.Message):
    __slots__ = ("nodes", "by_s", "reason", "end_s")
    NODES_FIELD_NUMBER: _ClassVar[int]
    BY_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    nodes: str
    by_s: int
    reason: str
    end_s: int
    def __init__(self, nodes: _Optional[str] = ..., by_s: _Optional[int] = ..., reason: _Optional[str] = ..., end_s: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class Power(_message.Message):
    __slots__ = ("nodes", "up", "reason")
    NODES_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    nodes: str
    up: bool
    reason: str
    def __init__(self, nodes: _Optional[str] = ..., up: bool = ..., reason: _Optional[str] = ...) -> None: ...

class Quota(_message.Message):
    __slots__ = ("milli_cpus_per_node", "weight")
    MILLI_CPUS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    milli_cpus_per_node: int
    weight: int
    def __init__(self, milli_cpus_per_node: _Optional[int] = ..., weight: _Optional[int] = ...) -> None: ...

class Requeue(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Extend(_message.Message):
    __slots__ = ("total_s",)
    TOTAL_S_FIELD_NUMBER: _ClassVar[int]
    total_s: int
    def __init__(self, total_s: _Optional[int] = ...) -> None: ...

class Fate(_message.Message):
    __slots__ = ("decision_id", "job_id", "outcome", "code", "text")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    decision_id: int
    job_id: str
    outcome: Outcome
    code: int
    text: str
    def __init__(self, decision_id: _Optional[int] = ..., job_id: _Optional[str] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., code: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...
