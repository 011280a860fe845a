# SPDX-License-Identifier: Apache-2.0
"""CPU shares of jobs on this node, where two jobs share it: weights and quotas, kept in force.

Imports `agent/processes.py` and the cgroups of `agent/use`, but neither the wire nor gRPC, except
in `node_service.py`, the part of an agent: the guardian, which takes over when the agent dies, must
stay small. Start with `wanted.py`, which computes the shares that should be in force, then
`keeper.py`.
"""
