# SPDX-License-Identifier: Apache-2.0
"""OpenPBS: a link that takes the place of pbs_sched, as a client of the wire.

`tables.py` is what both halves share: a server's objects as dictionaries of texts.
`ifl/` and `link/` talk to the server and to the service; the rest are pure functions from
dictionaries to messages of the wire and back. Only `bridge.cli` and the registry of dialects import
this package; it imports planning's grammar of chunks and the wire's messages. Start with
`tables.py`.
"""
