# SPDX-License-Identifier: Apache-2.0
"""The settings of a link, as they pass from the command to its processes."""

import json
from dataclasses import asdict, dataclass

from bridge.errors import ConfigError


@dataclass(frozen=True)
class LinkSettings:
    """Everything a link needs to know.

    Attributes:
        service: address of the service in gRPC's form.
        pbs_exec: where PBS is installed; empty: as pbs.conf says.
        server: name of the server; empty: as pbs.conf says.
        scheduler: name of the scheduler object to register as.
        silence_s: pbs_sched takes over when the service has not answered for this long.
        watchdog_s: the link is killed when it has shown no sign of life for this long.
        tick_s: the service is called at least this often.
        poll_s: least time between two queries for objects that send no command.
        write_share: part of the server's time that comments and estimates may take that change.
        stock: command line of the scheduler that takes over; empty: none does.
        log_level, log_format: level and format of the log on standard error.
    """

    service: str = "unix:/run/schedbridge/bridge.sock"
    pbs_exec: str = ""
    server: str = ""
    scheduler: str = "default"
    silence_s: float = 5.0
    watchdog_s: float = 10.0
    tick_s: float = 10.0
    poll_s: float = 1.0
    write_share: float = 0.25
    stock: tuple[str, ...] = ()
    log_level: str = "info"
    log_format: str = "text"

    def __post_init__(self) -> None:
        """Checks them.

        Raises:
            ConfigError: one is out of range.
        """
        for name, minimum, maximum in (
            ("silence_s", 1.0, 3600.0),
            ("watchdog_s", 2.0, 3600.0),
            ("tick_s", 1.0, 3600.0),
            ("poll_s", 0.05, 60.0),
            ("write_share", 0.0, 0.9),
        ):
            value = getattr(self, name)
            if not minimum <= value <= maximum:
                raise ConfigError(name, f"{value:g} is not from {minimum:g} to {maximum:g}")
        if self.watchdog_s <= self.silence_s:
            raise ConfigError(
                "watchdog_s", f"{self.watchdog_s:g} s must be longer than silence_s, which a call "
                "to the service may take",
            )  # fmt: skip

    def written(self) -> str:
        """As a text, for `read`."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> "LinkSettings":
        """Reads what `written` made."""
        values = json.loads(text)
        return cls(**(values | {"stock": tuple(values["stock"])}))
