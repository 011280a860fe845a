# SPDX-License-Identifier: Apache-2.0
"""The batch interface (IFL) of PBS.

`port.py` states what is used of it; `library.py` calls libpbs.so.0 by ctypes, `structures.py` reads
its lists. Imports the tables. Start with `port.py`.
"""
