# SPDX-License-Identifier: Apache-2.0
"""The whole system under one seed: controller, plugin, wire, service and store in virtual time.

| file | what |
|---|---|
| schedule.py | virtual time, and what happens when |
| cluster.py | a model of slurmctld: jobs, nodes, reservations, licences; it checks every start |
| plugin.py | a model of sched/bridge: generations, sent state, outcomes of decisions, silence |
| network.py | calls that get lost, doubled, delayed |
| host.py | the machine of the service: the real parts, which die at any line and start again |
| disk.py | a disk that is full, and what a loss of power leaves of the store's files |
| script.py | what happens in a run, drawn from its seed |
| run.py | one run |
| checker.py | what must hold of every history; shares no code with `bridge` |
| twice.py | one of its rules |
| shrink.py | looks for a shorter script that breaks the same rule |

No sockets, no second thread, no clock: the same seed gives the same history, anywhere.
"""
