# SPDX-License-Identifier: Apache-2.0
"""The launcher as a separate process: python -m bridge.extensions.elastic.launcher FOLDER FD FD."""

import socket
import sys
from pathlib import Path

from bridge.extensions.elastic.launcher.loop import Loop
from bridge.extensions.elastic.launcher.options import Folder


def main() -> None:
    """Runs a launcher on the listening sockets that its supervisor holds."""
    listeners = [socket.socket(fileno=int(fd)) for fd in sys.argv[2:]]
    for listener in listeners:
        listener.setblocking(False)
    Loop(Folder(Path(sys.argv[1])), listeners).run()


if __name__ == "__main__":
    main()
