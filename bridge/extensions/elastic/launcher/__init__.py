# SPDX-License-Identifier: Apache-2.0
"""The launcher of a malleable job: owns its steps, between the node's agent and the program.

`machine.py` reacts to events: `boot.py` until the engine is chosen, `relaunch.py` when all
processes end and start again, `programs.py` for programs without MPI; `core.py` is their common
part, `record.py` their memory. `steps.py` calls srun, `peers.py` the agent, and `loop.py` drives
them. `supervisor.py` restarts a launcher that was killed; `options.py` reads the command.

Imports the standard library, `bridge.errors` and the lines to the agent. Start with `machine.py`.
"""
