# SPDX-License-Identifier: Apache-2.0
"""`schedbridge pbs-link`: makes the service the scheduler of an OpenPBS server."""

import shlex
import signal
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from bridge.errors import ConfigError
from bridge.pbs.ifl.library import conf_value, find_library
from bridge.pbs.link.settings import LinkSettings
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
        float, typer.Option(help="The link is killed after this many seconds without activity.")
    ] = 10.0,
    poll: Annotated[
        float, typer.Option(help="Seconds between two queries of vnodes.")
    ] = 1.0,
    write_share: Annotated[
        float, typer.Option(help="Share of the server's time for comments and estimated starts "
                            "that change; 0: none are written.")
    ] = 0.25,
    stock: Annotated[
        str, typer.Option(help="Command that takes over, in the foreground; 'none': nothing does. "
                          "Default: PBS_EXEC/sbin/pbs_sched -N.")
    ] = "",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only report the queue, by qstat and pbsnodes, for "
                           "plan and explain: nothing is started. Needs no libpbs.so.0.")
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Lowest severity logged.")
    ] = "info",
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="Format of the log.")
    ] = "text",
) -> None:  # fmt: skip
    """Take the place of pbs_sched: the service decides, this process carries it out.

    Runs on the scheduler's host, as root or as PBS_DAEMON_SERVICE_USER of pbs.conf. While the
    service is silent, pbs_sched runs. Stops on SIGTERM; then no scheduler runs until one is
    started.

    With --read-only it may run beside pbs_sched, on any host with PBS's commands; best as a
    manager or operator of PBS, who are shown all attributes of jobs.
    """
    start_logging(log_level, log_format)
    address = service if ":" in service else f"unix:{service}"
    if read_only:
        _read_only(address, pbs_exec, server, scheduler, silence)
        return
    library = find_library(pbs_exec)
    folder = library.parent.parent
    settings = LinkSettings(
        service=address,
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
    ending = _until_told()
    command = settings.stock
    Supervisor(
        settings,
        lambda: LinkChild(settings),
        (lambda: Child(command)) if command else None,
        notify=notify,
    ).run(ending.is_set)


def _until_told() -> threading.Event:
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    return ending


def _read_only(address: str, pbs_exec: str, server: str, scheduler: str, silence_s: float) -> None:
    """Reports until it is told to end."""
    # Not at the top: the supervisor is to be without gRPC.
    from bridge.pbs.link.read_only import read_only_link  # noqa: PLC0415

    folder = pbs_exec or conf_value("PBS_EXEC")
    link = read_only_link(address, folder, server, scheduler, silence_s)
    ending = _until_told()
    notify("READY=1\nSTATUS=read-only: no job is started")
    link.run(ending)


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
