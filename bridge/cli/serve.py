# SPDX-License-Identifier: Apache-2.0
"""`schedbridge serve`: runs the service until it is stopped."""

from pathlib import Path
from typing import Annotated

import typer

from bridge.service.config import ServiceConfig, load
from bridge.service.logs import start_logging
from bridge.service.serve import Service


def serve(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Configuration file (YAML). Default: all defaults."),
    ] = None,
) -> None:
    """Run the service: slurmctld's plugin calls it, operators ask it.

    Stops on SIGTERM or Ctrl-C after the running cycle; SIGHUP reads the section 'planning' of the
    configuration again (limits, FreePools). Check a configuration beforehand with
    'schedbridge check-config FILE'.
    """
    settings = load(config) if config is not None else ServiceConfig()
    start_logging(settings.log.level, settings.log.format)
    Service(settings, config).run()
