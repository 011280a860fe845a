# SPDX-License-Identifier: Apache-2.0
from bridge.rpc.pb import coscheduling_pb2 as _coscheduling_pb2
from bridge.rpc.pb import scheduler_pb2 as _scheduler_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChainKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHAIN_KIND_UNSPECIFIED: _ClassVar[ChainKind]
    CHAIN_KIND_RUNNING_JOB: _ClassVar[ChainKind]
    CHAIN_KIND_WAITING_JOB: _ClassVar[ChainKind]
    CHAIN_KIND_RESERVATION: _ClassVar[ChainKind]
    CHAIN_KIND_BEGIN_TIME: _ClassVar[ChainKind]

class Period(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PERIOD_UNSPECIFIED: _ClassVar[Period]
    PERIOD_HOUR: _ClassVar[Period]
    PERIOD_DAY: _ClassVar[Period]
    PERIOD_WEEK: _ClassVar[Period]
    PERIOD_ALL: _ClassVar[Period]

class WidthCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WIDTH_CODE_NONE: _ClassVar[WidthCode]
    WIDTH_CODE_GROWS: _ClassVar[WidthCode]
    WIDTH_CODE_SHRINKS: _ClassVar[WidthCode]
    WIDTH_CODE_ADAPTING: _ClassVar[WidthCode]
    WIDTH_CODE_NO_LAUNCHER: _ClassVar[WidthCode]
    WIDTH_CODE_HELD: _ClassVar[WidthCode]
    WIDTH_CODE_RESTS: _ClassVar[WidthCode]
    WIDTH_CODE_ELSEWHERE: _ClassVar[WidthCode]
    WIDTH_CODE_LIMIT: _ClassVar[WidthCode]
    WIDTH_CODE_TOO_SOON: _ClassVar[WidthCode]
    WIDTH_CODE_OTHER_ADAPTS: _ClassVar[WidthCode]
    WIDTH_CODE_ENDS_SOON: _ClassVar[WidthCode]
    WIDTH_CODE_WIDEST: _ClassVar[WidthCode]
    WIDTH_CODE_NO_IDLE_NODES: _ClassVar[WidthCode]
    WIDTH_CODE_PLANNED_NODES: _ClassVar[WidthCode]
    WIDTH_CODE_TOO_FEW_NODES: _ClassVar[WidthCode]
    WIDTH_CODE_NO_GAIN: _ClassVar[WidthCode]
    WIDTH_CODE_OTHERS_FIRST: _ClassVar[WidthCode]
    WIDTH_CODE_RULE: _ClassVar[WidthCode]
    WIDTH_CODE_POLICY: _ClassVar[WidthCode]

class CorridorEffectKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CORRIDOR_EFFECT_KIND_UNSPECIFIED: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_SHRUNK: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_GROWN: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_HELD: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_DELAYED: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_EARLIER: _ClassVar[CorridorEffectKind]
    CORRIDOR_EFFECT_KIND_PLANNED: _ClassVar[CorridorEffectKind]
CHAIN_KIND_UNSPECIFIED: ChainKind
CHAIN_KIND_RUNNING_JOB: ChainKind
CHAIN_KIND_WAITING_JOB: ChainKind
CHAIN_KIND_RESERVATION: ChainKind
CHAIN_KIND_BEGIN_TIME: ChainKind
PERIOD_UNSPECIFIED: Period
PERIOD_HOUR: Period
PERIOD_DAY: Period
PERIOD_WEEK: Period
PERIOD_ALL: Period
WIDTH_CODE_NONE: WidthCode
WIDTH_CODE_GROWS: WidthCode
WIDTH_CODE_SHRINKS: WidthCode
WIDTH_CODE_ADAPTING: WidthCode
WIDTH_CODE_NO_LAUNCHER: WidthCode
WIDTH_CODE_HELD: WidthCode
WIDTH_CODE_RESTS: WidthCode
WIDTH_CODE_ELSEWHERE: WidthCode
WIDTH_CODE_LIMIT: WidthCode
WIDTH_CODE_TOO_SOON: WidthCode
WIDTH_CODE_OTHER_ADAPTS: WidthCode
WIDTH_CODE_ENDS_SOON: WidthCode
WIDTH_CODE_WIDEST: WidthCode
WIDTH_CODE_NO_IDLE_NODES: WidthCode
WIDTH_CODE_PLANNED_NODES: WidthCode
WIDTH_CODE_TOO_FEW_NODES: WidthCode
WIDTH_CODE_NO_GAIN: WidthCode
WIDTH_CODE_OTHERS_FIRST: WidthCode
WIDTH_CODE_RULE: WidthCode
WIDTH_CODE_POLICY: WidthCode
CORRIDOR_EFFECT_KIND_UNSPECIFIED: CorridorEffectKind
CORRIDOR_EFFECT_KIND_SHRUNK: CorridorEffectKind
CORRIDOR_EFFECT_KIND_GROWN: CorridorEffectKind
CORRIDOR_EFFECT_KIND_HELD: CorridorEffectKind
CORRIDOR_EFFECT_KIND_DELAYED: CorridorEffectKind
CORRIDOR_EFFECT_KIND_EARLIER: CorridorEffectKind
CORRIDOR_EFFECT_KIND_PLANNED: CorridorEffectKind

class ChangesRequest(_message.Message):
    __slots__ = ("limit", "since_s")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    limit: int
    since_s: int
    def __init__(self, limit: _Optional[int] = ..., since_s: _Optional[int] = ...) -> None: ...

class ChangesReply(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[OperatorChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[OperatorChange, _Mapping]]] = ...) -> None: ...

class OperatorChange(_message.Message):
    __slots__ = ("at_s", "uid", "user", "method", "before", "after", "result", "done")
    AT_S_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    at_s: int
    uid: int
    user: str
    method: str
    before: str
    after: str
    result: str
    done: bool
    def __init__(self, at_s: _Optional[int] = ..., uid: _Optional[int] = ..., user: _Optional[str] = ..., method: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., result: _Optional[str] = ..., done: bool = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("service", "policy", "uptime_s", "since_last_cycle_s", "controller", "cluster", "generation", "cycles", "cycle_ms_last", "cycle_ms_p99", "jobs_pending", "jobs_running", "jobs_planned", "nodes", "nodes_usable", "decisions", "refusals", "controller_status", "policy_failures", "unknown_resources", "jobs_malleable", "dialect", "power_losses", "left_out")
    class DecisionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RefusalsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    SINCE_LAST_CYCLE_S_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    CYCLE_MS_LAST_FIELD_NUMBER: _ClassVar[int]
    CYCLE_MS_P99_FIELD_NUMBER: _ClassVar[int]
    JOBS_PENDING_FIELD_NUMBER: _ClassVar[int]
    JOBS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    JOBS_PLANNED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODES_USABLE_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_STATUS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FAILURES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    JOBS_MALLEABLE_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    POWER_LOSSES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    service: str
    policy: str
    uptime_s: float
    since_last_cycle_s: float
    controller: str
    cluster: str
    generation: int
    cycles: int
    cycle_ms_last: float
    cycle_ms_p99: float
    jobs_pending: int
    jobs_running: int
    jobs_planned: int
    nodes: int
    nodes_usable: int
    decisions: _containers.ScalarMap[str, int]
    refusals: _containers.ScalarMap[str, int]
    controller_status: _scheduler_pb2.ControllerStatus
    policy_failures: int
    unknown_resources: _containers.RepeatedScalarFieldContainer[str]
    jobs_malleable: int
    dialect: str
    power_losses: _containers.RepeatedScalarFieldContainer[str]
    left_out: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, service: _Optional[str] = ..., policy: _Optional[str] = ..., uptime_s: _Optional[float] = ..., since_last_cycle_s: _Optional[float] = ..., controller: _Optional[str] = ..., cluster: _Optional[str] = ..., generation: _Optional[int] = ..., cycles: _Optional[int] = ..., cycle_ms_last: _Optional[float] = ..., cycle_ms_p99: _Optional[float] = ..., jobs_pending: _Optional[int] = ..., jobs_running: _Optional[int] = ..., jobs_planned: _Optional[int] = ..., nodes: _Optional[int] = ..., nodes_usable: _Optional[int] = ..., decisions: _Optional[_Mapping[str, int]] = ..., refusals: _Optional[_Mapping[str, int]] = ..., controller_status: _Optional[_Union[_scheduler_pb2.ControllerStatus, _Mapping]] = ..., policy_failures: _Optional[int] = ..., unknown_resources: _Optional[_Iterable[str]] = ..., jobs_malleable: _Optional[int] = ..., dialect: _Optional[str] = ..., power_losses: _Optional[_Iterable[str]] = ..., left_out: _Optional[_Iterable[str]] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class PlanReply(_message.Message):
    __slots__ = ("now_s", "policy", "jobs", "dialect")
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    now_s: int
    policy: str
    jobs: _containers.RepeatedCompositeFieldContainer[PlannedJob]
    dialect: str
    def __init__(self, now_s: _Optional[int] = ..., policy: _Optional[str] = ..., jobs: _Optional[_Iterable[_Union[PlannedJob, _Mapping]]] = ..., dialect: _Optional[str] = ...) -> None: ...

class PlannedJob(_message.Message):
    __slots__ = ("job_id", "name", "user", "partition", "start_s", "end_s", "nodes", "node_count", "running", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    user: str
    partition: str
    start_s: int
    end_s: int
    nodes: str
    node_count: int
    running: bool
    reason: _scheduler_pb2.Pending
    def __init__(self, job_id: _Optional[str] = ..., name: _Optional[str] = ..., user: _Optional[str] = ..., partition: _Optional[str] = ..., start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., nodes: _Optional[str] = ..., node_count: _Optional[int] = ..., running: bool = ..., reason: _Optional[_Union[_scheduler_pb2.Pending, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("job", "lines", "blockers", "chain", "changes", "changes_known", "width", "dialect")
    JOB_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    BLOCKERS_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CHANGES_KNOWN_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    job: PlannedJob
    lines: _containers.RepeatedScalarFieldContainer[str]
    blockers: _containers.RepeatedCompositeFieldContainer[PlannedJob]
    chain: _containers.RepeatedCompositeFieldContainer[ChainLink]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    changes_known: bool
    width: WidthReason
    dialect: str
    def __init__(self, job: _Optional[_Union[PlannedJob, _Mapping]] = ..., lines: _Optional[_Iterable[str]] = ..., blockers: _Optional[_Iterable[_Union[PlannedJob, _Mapping]]] = ..., chain: _Optional[_Iterable[_Union[ChainLink, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., changes_known: bool = ..., width: _Optional[_Union[WidthReason, _Mapping]] = ..., dialect: _Optional[str] = ...) -> None: ...

class ChainLink(_message.Message):
    __slots__ = ("kind", "job", "until_s", "shared_nodes", "licence", "reservation")
    KIND_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    SHARED_NODES_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    kind: ChainKind
    job: PlannedJob
    until_s: int
    shared_nodes: int
    licence: str
    reservation: str
    def __init__(self, kind: _Optional[_Union[ChainKind, str]] = ..., job: _Optional[_Union[PlannedJob, _Mapping]] = ..., until_s: _Optional[int] = ..., shared_nodes: _Optional[int] = ..., licence: _Optional[str] = ..., reservation: _Optional[str] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("start_s", "time_limit_s", "nodes", "tasks", "chunks", "partition", "options", "text", "free_pools")
    START_S_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FREE_POOLS_FIELD_NUMBER: _ClassVar[int]
    start_s: int
    time_limit_s: int
    nodes: int
    tasks: int
    chunks: int
    partition: str
    options: str
    text: str
    free_pools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, start_s: _Optional[int] = ..., time_limit_s: _Optional[int] = ..., nodes: _Optional[int] = ..., tasks: _Optional[int] = ..., chunks: _Optional[int] = ..., partition: _Optional[str] = ..., options: _Optional[str] = ..., text: _Optional[str] = ..., free_pools: _Optional[_Iterable[str]] = ...) -> None: ...

class TopologyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TopologyReply(_message.Message):
    __slots__ = ("now_s", "switches", "nodes", "jobs")
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    now_s: int
    switches: _containers.RepeatedCompositeFieldContainer[SwitchAbove]
    nodes: _containers.RepeatedCompositeFieldContainer[NodePlace]
    jobs: _containers.RepeatedCompositeFieldContainer[PlannedJob]
    def __init__(self, now_s: _Optional[int] = ..., switches: _Optional[_Iterable[_Union[SwitchAbove, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[NodePlace, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[PlannedJob, _Mapping]]] = ...) -> None: ...

class SwitchAbove(_message.Message):
    __slots__ = ("name", "parent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: int
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[int] = ...) -> None: ...

class NodePlace(_message.Message):
    __slots__ = ("name", "leaf", "usable", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEAF_FIELD_NUMBER: _ClassVar[int]
    USABLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    leaf: int
    usable: bool
    state: str
    def __init__(self, name: _Optional[str] = ..., leaf: _Optional[int] = ..., usable: bool = ..., state: _Optional[str] = ...) -> None: ...

class PolicyRequest(_message.Message):
    __slots__ = ("set",)
    SET_FIELD_NUMBER: _ClassVar[int]
    set: str
    def __init__(self, set: _Optional[str] = ...) -> None: ...

class PresetSummary(_message.Message):
    __slots__ = ("name", "summary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    summary: str
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...

class PolicyReply(_message.Message):
    __slots__ = ("yaml", "choices", "unknown_resources", "left_out", "presets")
    YAML_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    PRESETS_FIELD_NUMBER: _ClassVar[int]
    yaml: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    unknown_resources: _containers.RepeatedScalarFieldContainer[str]
    left_out: _containers.RepeatedScalarFieldContainer[str]
    presets: _containers.RepeatedCompositeFieldContainer[PresetSummary]
    def __init__(self, yaml: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ..., unknown_resources: _Optional[_Iterable[str]] = ..., left_out: _Optional[_Iterable[str]] = ..., presets: _Optional[_Iterable[_Union[PresetSummary, _Mapping]]] = ...) -> None: ...

class ReserveRequest(_message.Message):
    __slots__ = ("name", "start_s", "duration_s", "nodes", "chunks", "partition", "users", "accounts", "displace", "dry_run", "licences")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    DISPLACE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    start_s: int
    duration_s: int
    nodes: int
    chunks: str
    partition: str
    users: _containers.RepeatedScalarFieldContainer[str]
    accounts: _containers.RepeatedScalarFieldContainer[str]
    displace: bool
    dry_run: bool
    licences: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., start_s: _Optional[int] = ..., duration_s: _Optional[int] = ..., nodes: _Optional[int] = ..., chunks: _Optional[str] = ..., partition: _Optional[str] = ..., users: _Optional[_Iterable[str]] = ..., accounts: _Optional[_Iterable[str]] = ..., displace: bool = ..., dry_run: bool = ..., licences: _Optional[_Iterable[str]] = ...) -> None: ...

class ReserveReply(_message.Message):
    __slots__ = ("made", "start_s", "end_s", "nodes", "node_count", "jobs", "next_start_s", "command")
    MADE_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_START_S_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    made: bool
    start_s: int
    end_s: int
    nodes: str
    node_count: int
    jobs: _containers.RepeatedCompositeFieldContainer[PlannedJob]
    next_start_s: int
    command: str
    def __init__(self, made: bool = ..., start_s: _Optional[int] = ..., end_s: _Optional[int] = ..., nodes: _Optional[str] = ..., node_count: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[PlannedJob, _Mapping]]] = ..., next_start_s: _Optional[int] = ..., command: _Optional[str] = ...) -> None: ...

class UnreserveRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UnreserveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RecordRequest(_message.Message):
    __slots__ = ("min_queue", "wait_s")
    MIN_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    min_queue: int
    wait_s: int
    def __init__(self, min_queue: _Optional[int] = ..., wait_s: _Optional[int] = ...) -> None: ...

class RecordReply(_message.Message):
    __slots__ = ("recording", "generation")
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    recording: bytes
    generation: int
    def __init__(self, recording: _Optional[bytes] = ..., generation: _Optional[int] = ...) -> None: ...

class AccuracyRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: str
    def __init__(self, partition: _Optional[str] = ...) -> None: ...

class AccuracyReply(_message.Message):
    __slots__ = ("now_s", "since_s", "keep_days", "waiting_promised", "lines", "series", "series_step_s")
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    KEEP_DAYS_FIELD_NUMBER: _ClassVar[int]
    WAITING_PROMISED_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    SERIES_STEP_S_FIELD_NUMBER: _ClassVar[int]
    now_s: int
    since_s: int
    keep_days: int
    waiting_promised: int
    lines: _containers.RepeatedCompositeFieldContainer[AccuracyLine]
    series: _containers.RepeatedCompositeFieldContainer[AccuracyPoint]
    series_step_s: int
    def __init__(self, now_s: _Optional[int] = ..., since_s: _Optional[int] = ..., keep_days: _Optional[int] = ..., waiting_promised: _Optional[int] = ..., lines: _Optional[_Iterable[_Union[AccuracyLine, _Mapping]]] = ..., series: _Optional[_Iterable[_Union[AccuracyPoint, _Mapping]]] = ..., series_step_s: _Optional[int] = ...) -> None: ...

class AccuracyLine(_message.Message):
    __slots__ = ("period", "partition", "promised", "unpromised", "gone", "first", "last", "changed", "changes", "later_s", "earlier_s")
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    UNPROMISED_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    LATER_S_FIELD_NUMBER: _ClassVar[int]
    EARLIER_S_FIELD_NUMBER: _ClassVar[int]
    period: Period
    partition: str
    promised: int
    unpromised: int
    gone: int
    first: StartErrors
    last: StartErrors
    changed: float
    changes: float
    later_s: float
    earlier_s: float
    def __init__(self, period: _Optional[_Union[Period, str]] = ..., partition: _Optional[str] = ..., promised: _Optional[int] = ..., unpromised: _Optional[int] = ..., gone: _Optional[int] = ..., first: _Optional[_Union[StartErrors, _Mapping]] = ..., last: _Optional[_Union[StartErrors, _Mapping]] = ..., changed: _Optional[float] = ..., changes: _Optional[float] = ..., later_s: _Optional[float] = ..., earlier_s: _Optional[float] = ...) -> None: ...

class StartErrors(_message.Message):
    __slots__ = ("median_s", "absolute_mean_s", "absolute_p50_s", "absolute_p90_s", "kept", "percentiles_s")
    MEDIAN_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_MEAN_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_P50_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_P90_S_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    PERCENTILES_S_FIELD_NUMBER: _ClassVar[int]
    median_s: float
    absolute_mean_s: float
    absolute_p50_s: float
    absolute_p90_s: float
    kept: float
    percentiles_s: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, median_s: _Optional[float] = ..., absolute_mean_s: _Optional[float] = ..., absolute_p50_s: _Optional[float] = ..., absolute_p90_s: _Optional[float] = ..., kept: _Optional[float] = ..., percentiles_s: _Optional[_Iterable[int]] = ...) -> None: ...

class AccuracyPoint(_message.Message):
    __slots__ = ("from_s", "partition", "promised", "absolute_p50_s", "absolute_p90_s")
    FROM_S_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_P50_S_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTE_P90_S_FIELD_NUMBER: _ClassVar[int]
    from_s: int
    partition: str
    promised: int
    absolute_p50_s: float
    absolute_p90_s: float
    def __init__(self, from_s: _Optional[int] = ..., partition: _Optional[str] = ..., promised: _Optional[int] = ..., absolute_p50_s: _Optional[float] = ..., absolute_p90_s: _Optional[float] = ...) -> None: ...

class ElasticRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ElasticReply(_message.Message):
    __slots__ = ("jobs", "agents", "now_s")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[ElasticJob]
    agents: int
    now_s: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[ElasticJob, _Mapping]]] = ..., agents: _Optional[int] = ..., now_s: _Optional[int] = ...) -> None: ...

class ElasticJob(_message.Message):
    __slots__ = ("job_id", "user", "nodes", "node_count", "min_nodes", "max_nodes", "rule", "engine", "state", "until_s", "target_count", "target_nodes", "reason", "held", "rests_until_s", "mtct", "mtct_estimate", "never", "width", "last", "speed_ups")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    MIN_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    TARGET_COUNT_FIELD_NUMBER: _ClassVar[int]
    TARGET_NODES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    RESTS_UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    MTCT_FIELD_NUMBER: _ClassVar[int]
    MTCT_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    NEVER_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    SPEED_UPS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    user: str
    nodes: str
    node_count: int
    min_nodes: int
    max_nodes: int
    rule: str
    engine: str
    state: str
    until_s: int
    target_count: int
    target_nodes: str
    reason: str
    held: bool
    rests_until_s: int
    mtct: float
    mtct_estimate: float
    never: str
    width: WidthReason
    last: LastResize
    speed_ups: _containers.RepeatedCompositeFieldContainer[SpeedUp]
    def __init__(self, job_id: _Optional[str] = ..., user: _Optional[str] = ..., nodes: _Optional[str] = ..., node_count: _Optional[int] = ..., min_nodes: _Optional[int] = ..., max_nodes: _Optional[int] = ..., rule: _Optional[str] = ..., engine: _Optional[str] = ..., state: _Optional[str] = ..., until_s: _Optional[int] = ..., target_count: _Optional[int] = ..., target_nodes: _Optional[str] = ..., reason: _Optional[str] = ..., held: bool = ..., rests_until_s: _Optional[int] = ..., mtct: _Optional[float] = ..., mtct_estimate: _Optional[float] = ..., never: _Optional[str] = ..., width: _Optional[_Union[WidthReason, _Mapping]] = ..., last: _Optional[_Union[LastResize, _Mapping]] = ..., speed_ups: _Optional[_Iterable[_Union[SpeedUp, _Mapping]]] = ...) -> None: ...

class WidthReason(_message.Message):
    __slots__ = ("code", "nodes", "until_s", "text")
    CODE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    code: WidthCode
    nodes: int
    until_s: int
    text: str
    def __init__(self, code: _Optional[_Union[WidthCode, str]] = ..., nodes: _Optional[int] = ..., until_s: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class LastResize(_message.Message):
    __slots__ = ("from_nodes", "to_nodes", "outcome", "at_s", "lasted_s", "reason")
    FROM_NODES_FIELD_NUMBER: _ClassVar[int]
    TO_NODES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    LASTED_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    from_nodes: int
    to_nodes: int
    outcome: str
    at_s: int
    lasted_s: int
    reason: str
    def __init__(self, from_nodes: _Optional[int] = ..., to_nodes: _Optional[int] = ..., outcome: _Optional[str] = ..., at_s: _Optional[int] = ..., lasted_s: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class SpeedUp(_message.Message):
    __slots__ = ("width", "speed_up", "source")
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    SPEED_UP_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    width: int
    speed_up: float
    source: str
    def __init__(self, width: _Optional[int] = ..., speed_up: _Optional[float] = ..., source: _Optional[str] = ...) -> None: ...

class ChangeWidthRequest(_message.Message):
    __slots__ = ("job_id", "width", "keeping")
    class Keeping(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KEEPING_UNSPECIFIED: _ClassVar[ChangeWidthRequest.Keeping]
        KEEPING_HOLD: _ClassVar[ChangeWidthRequest.Keeping]
        KEEPING_RELEASE: _ClassVar[ChangeWidthRequest.Keeping]
    KEEPING_UNSPECIFIED: ChangeWidthRequest.Keeping
    KEEPING_HOLD: ChangeWidthRequest.Keeping
    KEEPING_RELEASE: ChangeWidthRequest.Keeping
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    KEEPING_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    width: int
    keeping: ChangeWidthRequest.Keeping
    def __init__(self, job_id: _Optional[str] = ..., width: _Optional[int] = ..., keeping: _Optional[_Union[ChangeWidthRequest.Keeping, str]] = ...) -> None: ...

class ChangeWidthReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PowerRequest(_message.Message):
    __slots__ = ("span_s", "limit")
    SPAN_S_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    span_s: int
    limit: int
    def __init__(self, span_s: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class PowerReply(_message.Message):
    __slots__ = ("now_s", "bounded", "lower_estimate_w", "estimate_w", "base_w", "idle_w", "jobs_w", "steps", "planned", "jobs", "jobs_running", "entries", "problems")
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    LOWER_ESTIMATE_W_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_W_FIELD_NUMBER: _ClassVar[int]
    BASE_W_FIELD_NUMBER: _ClassVar[int]
    IDLE_W_FIELD_NUMBER: _ClassVar[int]
    JOBS_W_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    JOBS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    now_s: int
    bounded: bool
    lower_estimate_w: int
    estimate_w: int
    base_w: int
    idle_w: int
    jobs_w: int
    steps: _containers.RepeatedCompositeFieldContainer[CorridorStep]
    planned: _containers.RepeatedCompositeFieldContainer[PowerStep]
    jobs: _containers.RepeatedCompositeFieldContainer[PowerJob]
    jobs_running: int
    entries: _containers.RepeatedCompositeFieldContainer[CorridorEntry]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, now_s: _Optional[int] = ..., bounded: bool = ..., lower_estimate_w: _Optional[int] = ..., estimate_w: _Optional[int] = ..., base_w: _Optional[int] = ..., idle_w: _Optional[int] = ..., jobs_w: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[CorridorStep, _Mapping]]] = ..., planned: _Optional[_Iterable[_Union[PowerStep, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[PowerJob, _Mapping]]] = ..., jobs_running: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[CorridorEntry, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class CorridorStep(_message.Message):
    __slots__ = ("from_s", "until_s", "lower_w", "upper_w", "lower_by", "upper_by")
    FROM_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    LOWER_W_FIELD_NUMBER: _ClassVar[int]
    UPPER_W_FIELD_NUMBER: _ClassVar[int]
    LOWER_BY_FIELD_NUMBER: _ClassVar[int]
    UPPER_BY_FIELD_NUMBER: _ClassVar[int]
    from_s: int
    until_s: int
    lower_w: int
    upper_w: int
    lower_by: str
    upper_by: str
    def __init__(self, from_s: _Optional[int] = ..., until_s: _Optional[int] = ..., lower_w: _Optional[int] = ..., upper_w: _Optional[int] = ..., lower_by: _Optional[str] = ..., upper_by: _Optional[str] = ...) -> None: ...

class PowerStep(_message.Message):
    __slots__ = ("from_s", "until_s", "estimate_w")
    FROM_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_W_FIELD_NUMBER: _ClassVar[int]
    from_s: int
    until_s: int
    estimate_w: int
    def __init__(self, from_s: _Optional[int] = ..., until_s: _Optional[int] = ..., estimate_w: _Optional[int] = ...) -> None: ...

class PowerJob(_message.Message):
    __slots__ = ("job", "estimate_w", "source")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_W_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    job: PlannedJob
    estimate_w: int
    source: str
    def __init__(self, job: _Optional[_Union[PlannedJob, _Mapping]] = ..., estimate_w: _Optional[int] = ..., source: _Optional[str] = ...) -> None: ...

class CorridorEntry(_message.Message):
    __slots__ = ("id", "author", "origin", "reason", "entered_s", "from_s", "until_s", "lower_w", "upper_w", "removed_s", "removed_by", "state")
    ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ENTERED_S_FIELD_NUMBER: _ClassVar[int]
    FROM_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    LOWER_W_FIELD_NUMBER: _ClassVar[int]
    UPPER_W_FIELD_NUMBER: _ClassVar[int]
    REMOVED_S_FIELD_NUMBER: _ClassVar[int]
    REMOVED_BY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    id: int
    author: str
    origin: str
    reason: str
    entered_s: int
    from_s: int
    until_s: int
    lower_w: int
    upper_w: int
    removed_s: int
    removed_by: str
    state: str
    def __init__(self, id: _Optional[int] = ..., author: _Optional[str] = ..., origin: _Optional[str] = ..., reason: _Optional[str] = ..., entered_s: _Optional[int] = ..., from_s: _Optional[int] = ..., until_s: _Optional[int] = ..., lower_w: _Optional[int] = ..., upper_w: _Optional[int] = ..., removed_s: _Optional[int] = ..., removed_by: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class CorridorRequest(_message.Message):
    __slots__ = ("lower_w", "upper_w", "from_s", "until_s", "duration_s", "reason", "undo", "restore", "dry_run")
    LOWER_W_FIELD_NUMBER: _ClassVar[int]
    UPPER_W_FIELD_NUMBER: _ClassVar[int]
    FROM_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    RESTORE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    lower_w: int
    upper_w: int
    from_s: int
    until_s: int
    duration_s: int
    reason: str
    undo: int
    restore: int
    dry_run: bool
    def __init__(self, lower_w: _Optional[int] = ..., upper_w: _Optional[int] = ..., from_s: _Optional[int] = ..., until_s: _Optional[int] = ..., duration_s: _Optional[int] = ..., reason: _Optional[str] = ..., undo: _Optional[int] = ..., restore: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class CorridorReply(_message.Message):
    __slots__ = ("entry", "steps", "effects", "effects_total", "warnings")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    entry: CorridorEntry
    steps: _containers.RepeatedCompositeFieldContainer[CorridorStep]
    effects: _containers.RepeatedCompositeFieldContainer[CorridorEffect]
    effects_total: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, entry: _Optional[_Union[CorridorEntry, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[CorridorStep, _Mapping]]] = ..., effects: _Optional[_Iterable[_Union[CorridorEffect, _Mapping]]] = ..., effects_total: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class CorridorEffect(_message.Message):
    __slots__ = ("kind", "job", "node_count", "start_s", "reason")
    KIND_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    START_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    kind: CorridorEffectKind
    job: PlannedJob
    node_count: int
    start_s: int
    reason: str
    def __init__(self, kind: _Optional[_Union[CorridorEffectKind, str]] = ..., job: _Optional[_Union[PlannedJob, _Mapping]] = ..., node_count: _Optional[int] = ..., start_s: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class CalibrateRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CalibrateReply(_message.Message):
    __slots__ = ("bounded", "types")
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    bounded: bool
    types: _containers.RepeatedCompositeFieldContainer[FittedPower]
    def __init__(self, bounded: bool = ..., types: _Optional[_Iterable[_Union[FittedPower, _Mapping]]] = ...) -> None: ...

class FittedPower(_message.Message):
    __slots__ = ("name", "names", "features", "having", "nodes", "node_count", "metered", "readings", "idle_w", "max_w", "error_w", "least_load", "most_load", "problem", "stated_idle_w", "stated_max_w")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    HAVING_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    METERED_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    IDLE_W_FIELD_NUMBER: _ClassVar[int]
    MAX_W_FIELD_NUMBER: _ClassVar[int]
    ERROR_W_FIELD_NUMBER: _ClassVar[int]
    LEAST_LOAD_FIELD_NUMBER: _ClassVar[int]
    MOST_LOAD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    STATED_IDLE_W_FIELD_NUMBER: _ClassVar[int]
    STATED_MAX_W_FIELD_NUMBER: _ClassVar[int]
    name: str
    names: str
    features: str
    having: str
    nodes: str
    node_count: int
    metered: int
    readings: int
    idle_w: int
    max_w: int
    error_w: int
    least_load: float
    most_load: float
    problem: str
    stated_idle_w: int
    stated_max_w: int
    def __init__(self, name: _Optional[str] = ..., names: _Optional[str] = ..., features: _Optional[str] = ..., having: _Optional[str] = ..., nodes: _Optional[str] = ..., node_count: _Optional[int] = ..., metered: _Optional[int] = ..., readings: _Optional[int] = ..., idle_w: _Optional[int] = ..., max_w: _Optional[int] = ..., error_w: _Optional[int] = ..., least_load: _Optional[float] = ..., most_load: _Optional[float] = ..., problem: _Optional[str] = ..., stated_idle_w: _Optional[int] = ..., stated_max_w: _Optional[int] = ...) -> None: ...
