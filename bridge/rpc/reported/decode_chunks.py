# SPDX-License-Identifier: Apache-2.0
"""Lowers a request in chunks to columns.

Rules
    1. A job with chunks requests nothing else; its ordinary request in the controller must be
       equivalent (`bridge.dialect.Dialect.check_chunks`, the same features).
    2. Chunks of one kind become units that may be split over the nodes (free), one on each node
       (scatter), or their sum on one (pack). For several kinds the columns are a conservative upper
       bound (`bridge.planning.requests.chunk_groups.chunk_columns`). Only policies that read the
       column `chunks` plan such jobs.
"""

from collections.abc import Collection

from bridge.dialect import Accounting, dialect_named
from bridge.errors import BadRequest, RequestError
from bridge.model.resources import LoweredChunks
from bridge.planning.requests.chunk_groups import (
    ChunkColumns,
    ClusterWords,
    chunk_columns,
    lower_chunks,
)
from bridge.planning.requests.chunks import parse_request
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.table_columns import MAX_AMOUNT, TableColumns

MAX_CONSTRAINT = 4096
"""Longest constraint expression, in characters."""


def decode_chunks(
    request: pb.Request, layout: TableColumns, accounting: Accounting, required: Collection[str]
) -> tuple[LoweredChunks, ChunkColumns]:
    """Reads chunks, and states them in the other columns.

    Args:
        request: has chunks.
        layout: names of the cluster.
        accounting: the accounting of the job's partitions.
        required: names of the nodes that it requests besides.

    Raises:
        BadRequest: they are invalid, or the controller's request is not equivalent.
    """
    words = dialect_named(layout.dialect).words
    chunks = _lowered(request, layout, accounting)
    if set(required) - {chunks.request.kinds[0].host}:
        raise BadRequest(
            f"{words.nodes_option} beside {words.chunks_option}: give host= in the chunks"
        )
    columns = chunk_columns(chunks)
    if max(*columns.per_node, *columns.per_task) * columns.max_nodes > MAX_AMOUNT:
        raise BadRequest("asks for more than any node could ever have")
    return chunks, columns


def _lowered(request: pb.Request, layout: TableColumns, accounting: Accounting) -> LoweredChunks:
    dialect = dialect_named(layout.dialect)
    option, malleable = dialect.words.chunks_option, request.malleable
    try:
        requested = parse_request(request.chunks.chunks, request.chunks.place)
    except RequestError as error:
        raise BadRequest(f"{option}: {error}") from error
    if malleable.min_nodes or malleable.max_nodes or malleable.node_constraint:
        raise BadRequest(
            f"numbers of nodes beside {option}: give {dialect.words.place_option}=scatter or pack"
        )
    dialect.check_chunks(requested, request)
    cluster = ClusterWords(
        column=layout.column,
        n_resources=len(layout.resources),
        threads=accounting.core_cpus,
        memory_consumable=layout.memory_consumable,
        features=layout.features,
        dialect=layout.dialect,
    )
    try:
        return lower_chunks(
            requested,
            cluster,
            constraint=constraint(request),
            memory_per_node_mib=request.memory_per_node_mib,
            memory_per_cpu_mib=request.memory_per_cpu_mib,
        )
    except RequestError as error:
        raise BadRequest(f"{option}: {error.problem}") from error


def constraint(request: pb.Request) -> str:
    """Returns the feature constraint of a request.

    Raises:
        BadRequest: it is too long.
    """
    text = request.features
    if len(text) > MAX_CONSTRAINT:
        raise BadRequest(f"constraint longer than {MAX_CONSTRAINT} characters")
    return text
