# SPDX-License-Identifier: Apache-2.0
"""The process of a link: `python -m bridge.pbs.link READ WRITE SETTINGS`, by its supervisor."""

import logging
import signal
import sys
import threading

from bridge.errors import BridgeError
from bridge.pbs.ifl.library import Library, find_library
from bridge.pbs.link.announcer import Announcer
from bridge.pbs.link.assembly import PbsModel
from bridge.pbs.link.loop import Link
from bridge.pbs.link.parent import Pipe
from bridge.pbs.link.sched_priv import SchedPriv, default_sched_priv
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.stream import Stream

_log = logging.getLogger(__name__)


def main(read_from: int, write_to: int, settings: LinkSettings) -> None:
    """Links until SIGTERM."""
    ending = threading.Event()
    parent = Pipe(read_from, write_to)
    ifl = Library(find_library(settings.pbs_exec))
    model = PbsModel(SchedPriv(default_sched_priv()))
    link = Link(
        settings,
        ifl,
        Stream(settings.service, model.hello()),
        model,
        parent,
        Announcer(ifl, settings.write_share),
    )

    def end(*_: object) -> None:
        ending.set()
        link.wake.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides
    link.run(ending)


if __name__ == "__main__":
    from bridge.service.logs import start_logging

    settings = LinkSettings.read(sys.argv[3])
    start_logging(settings.log_level, settings.log_format)
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), settings)
    except BridgeError as error:
        _log.error("%s", error)
        sys.exit(1)
