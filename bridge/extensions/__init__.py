# SPDX-License-Identifier: Apache-2.0
"""What a site can add to the scheduler: each folder is one extension, and `port.py` their port.

The port's further pages have what only a service needs: `service_port.py` and, for its operators,
`operators_port.py`. A folder has all of its extension: columns, stages, check, messages of the
wire, simulation, and a README. The scheduler imports none of them: they come in by entry points of
the group schedbridge.extensions (`bridge.extension_packages`), as a package of anybody else does.
Start with `port.py`, then `power/README.md`.
"""
