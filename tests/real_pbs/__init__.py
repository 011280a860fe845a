# SPDX-License-Identifier: Apache-2.0
"""Tests against a real OpenPBS server, which has to be installed (PBS_EXEC).

`world.py` makes a private network and file system and runs a command in it; `server.py` starts and
drives the server and its moms there; `service.py` the service and the link.
"""
