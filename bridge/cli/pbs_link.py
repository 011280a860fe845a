# SPDX-License-Identifier: Apache-2.0
"""`schedbridge pbs-link`: makes the service the scheduler of an OpenPBS server."""

import shlex
import signal
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from bridge.errors import ConfigError
from bridge.pbs.ifl.library import find_library
from bridge.pbs.link.settings import Settings
from bridge.pbs.link.supervisor import Child, LinkChild, Supervisor
from bridge.service.logs import start_logging
from bridge.service.signals import notify


def pbs_link(  # noqa: PLR0917 - options, by name
    service: Annotated[
        str, typer.Option(help="Socket of the service, as in its controller.socket.")
    ] = "/run/schedbridge/bridge.sock",
    pbs_exec: Annotated[
        str, typer.Option(envvar="PBS_EXEC", help="Where PBS is installed. Default: pbs.conf.")
    ] = "",
    server: Annotated[str, typer.Option(help="PBS server. Default: that of pbs.conf.")] = "",
    scheduler: Annotated[
        str, typer.Option(help="Scheduler object of the server to register as.")
    ] = "default",
    silence: Annotated[
        float, typer.Option(help="pbs_sched takes over after this many seconds of silence.")
    ] = 5.0,
    watchdog: Annotated[
        float, typer.Option(help="The link is killed after this many seconds without a sign.")
    ] = 10.0,
    poll: Annotated[
        float, typer.Option(help="Seconds between two looks at vnodes.")
    ] = 1.0,
    write_share: Annotated[
        float, typer.Option(help="Part of the server's time for comments and estimated starts; "
                            "0: none are written.")
    ] = 0.25,
    stock: Annotated[
        str, typer.Option(help="Command that takes over, in the foreground; 'none': nothing does. "
                          "Default: PBS_EXEC/sbin/pbs_sched -N.")
    ] = "",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Lowest severity logged.")
    ] = "info",
    log_format: Annotated[Literal["text", "json"], typer.Option(help="Of the log.")] = "text",
) -> None:  # fmt: skip
    """Take the place of pbs_sched: the service decides, this process carries it out.

    Runs on the scheduler's host, as root or as PBS_DAEMON_SERVICE_USER of pbs.conf. While the
    service is silent, pbs_sched runs. Stops on SIGTERM; then no scheduler runs until one is
    started.
    """
    start_logging(log_level, log_format)
    library = find_library(pbs_exec)
    folder = library.parent.parent
    settings = Settings(
        service=service if ":" in service else f"unix:{service}",
        pbs_exec=str(folder),
        server=server,
        scheduler=scheduler,
        silence_s=silence,
        watchdog_s=watchdog,
        poll_s=poll,
        write_share=write_share,
        stock=_stock(stock, folder, scheduler),
        log_level=log_level,
        log_format=log_format,
    )
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    command = settings.stock
    Supervisor(
        settings,
        lambda: LinkChild(settings),
        (lambda: Child(command)) if command else None,
        notify=notify,
    ).run(ending.is_set)


def _stock(told: str, folder: Path, scheduler: str) -> tuple[str, ...]:
    if told == "none":
        return ()
    if not told:
        named = () if scheduler == "default" else ("-I", scheduler)
        return (str(folder / "sbin/pbs_sched"), "-N", *named)
    words = tuple(shlex.split(told))
    if not words or not Path(words[0]).is_absolute():
        raise ConfigError("--stock", f"'{told[:80]}' does not begin with an absolute path")
    return words
