# SPDX-License-Identifier: Apache-2.0
"""Where the service listens if its configuration does not say.

Apart from the configuration, because the commands that ask a running service need nothing else of
it, and should answer at once.
"""

from pathlib import Path

CONTROLLER = Path("/run/schedbridge/bridge.sock")
OPERATOR = Path("/run/schedbridge-operator/operator.sock")
