# SPDX-License-Identifier: Apache-2.0
"""Jobs that share nodes: what is known about a host, and how a CPU quota for its guest is chosen.

Entry points name `extension.py`, the package of policies in `policies.py`, and the part of agents
in `on_nodes/`, for which nothing is imported here. Imports the port, planning and the model;
`agents.py`, `wire.py`, `operators.py` and `commands/` also rpc. Start with `slots.py` (who may
share), then `pairs.py`; `learner.py` says how quotas are learnt from experts.
"""
