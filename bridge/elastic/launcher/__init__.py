# SPDX-License-Identifier: Apache-2.0
"""The launcher of a malleable job: owns its steps, between the node's agent and the program.

    record.py      its memory, the events and the actions
    machine.py     how it reacts to each event: start reading here
    boot.py        … from the first start to the choice of the engine
    relaunch.py    … when all processes end and start again
    programs.py    … for programs without MPI
    core.py        what these have in common
    steps.py       srun, exit codes
    peers.py       the connection to the agent
    loop.py        sockets and steps around the machine
    supervisor.py  starts it again if it is killed
    options.py     its command line and its files

It survives SIGKILL: docs/design/0009-elastic-jobs.md says how.
"""
