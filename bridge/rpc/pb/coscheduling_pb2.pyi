# SPDX-License-Identifier: Apache-2.0
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CoschedulingRequest(_message.Message):
    __slots__ = ("order", "text")
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SHOW: _ClassVar[CoschedulingRequest.Order]
        ON: _ClassVar[CoschedulingRequest.Order]
        OFF: _ClassVar[CoschedulingRequest.Order]
        EXPORT: _ClassVar[CoschedulingRequest.Order]
        IMPORT: _ClassVar[CoschedulingRequest.Order]
    SHOW: CoschedulingRequest.Order
    ON: CoschedulingRequest.Order
    OFF: CoschedulingRequest.Order
    EXPORT: CoschedulingRequest.Order
    IMPORT: CoschedulingRequest.Order
    ORDER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    order: CoschedulingRequest.Order
    text: str
    def __init__(self, order: _Optional[_Union[CoschedulingRequest.Order, str]] = ..., text: _Optional[str] = ...) -> None: ...

class CoschedulingReply(_message.Message):
    __slots__ = ("now_s", "policy", "partitions", "off_since_s", "off_by_policy", "mean_harm", "observations", "guests", "pairs", "experts", "text", "stopped_users")
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OFF_SINCE_S_FIELD_NUMBER: _ClassVar[int]
    OFF_BY_POLICY_FIELD_NUMBER: _ClassVar[int]
    MEAN_HARM_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    GUESTS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    EXPERTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STOPPED_USERS_FIELD_NUMBER: _ClassVar[int]
    now_s: int
    policy: str
    partitions: _containers.RepeatedScalarFieldContainer[str]
    off_since_s: int
    off_by_policy: bool
    mean_harm: float
    observations: int
    guests: _containers.RepeatedCompositeFieldContainer[RunningGuest]
    pairs: _containers.RepeatedCompositeFieldContainer[SharedPair]
    experts: _containers.RepeatedCompositeFieldContainer[SharingExpert]
    text: str
    stopped_users: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, now_s: _Optional[int] = ..., policy: _Optional[str] = ..., partitions: _Optional[_Iterable[str]] = ..., off_since_s: _Optional[int] = ..., off_by_policy: bool = ..., mean_harm: _Optional[float] = ..., observations: _Optional[int] = ..., guests: _Optional[_Iterable[_Union[RunningGuest, _Mapping]]] = ..., pairs: _Optional[_Iterable[_Union[SharedPair, _Mapping]]] = ..., experts: _Optional[_Iterable[_Union[SharingExpert, _Mapping]]] = ..., text: _Optional[str] = ..., stopped_users: _Optional[_Iterable[str]] = ...) -> None: ...

class RunningGuest(_message.Message):
    __slots__ = ("job_id", "user", "name", "host_job_id", "nodes", "quota_milli_cpus", "weight", "requeued")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    QUOTA_MILLI_CPUS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    REQUEUED_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    user: str
    name: str
    host_job_id: str
    nodes: str
    quota_milli_cpus: int
    weight: int
    requeued: str
    def __init__(self, job_id: _Optional[str] = ..., user: _Optional[str] = ..., name: _Optional[str] = ..., host_job_id: _Optional[str] = ..., nodes: _Optional[str] = ..., quota_milli_cpus: _Optional[int] = ..., weight: _Optional[int] = ..., requeued: _Optional[str] = ...) -> None: ...

class SharedPair(_message.Message):
    __slots__ = ("host_user", "host_name", "guest_user", "guest_name", "node_count", "guest_cpus", "ceilings")
    HOST_USER_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    GUEST_USER_FIELD_NUMBER: _ClassVar[int]
    GUEST_NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    GUEST_CPUS_FIELD_NUMBER: _ClassVar[int]
    CEILINGS_FIELD_NUMBER: _ClassVar[int]
    host_user: str
    host_name: str
    guest_user: str
    guest_name: str
    node_count: int
    guest_cpus: float
    ceilings: _containers.RepeatedCompositeFieldContainer[CeilingHarm]
    def __init__(self, host_user: _Optional[str] = ..., host_name: _Optional[str] = ..., guest_user: _Optional[str] = ..., guest_name: _Optional[str] = ..., node_count: _Optional[int] = ..., guest_cpus: _Optional[float] = ..., ceilings: _Optional[_Iterable[_Union[CeilingHarm, _Mapping]]] = ...) -> None: ...

class CeilingHarm(_message.Message):
    __slots__ = ("ceiling_percent", "observations", "harm", "expected", "at_most")
    CEILING_PERCENT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    HARM_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    ceiling_percent: int
    observations: float
    harm: float
    expected: float
    at_most: float
    def __init__(self, ceiling_percent: _Optional[int] = ..., observations: _Optional[float] = ..., harm: _Optional[float] = ..., expected: _Optional[float] = ..., at_most: _Optional[float] = ...) -> None: ...

class SharingExpert(_message.Message):
    __slots__ = ("name", "weight", "risk")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    risk: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ..., risk: _Optional[float] = ...) -> None: ...
