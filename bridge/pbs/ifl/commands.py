# SPDX-License-Identifier: Apache-2.0
"""The tables of a server by its commands, where libpbs.so.0 is missing: read only.

Rules
    1. `qstat` and `pbsnodes` print jobs, vnodes, queues and the server as JSON (`qstat_json.py`);
       without one of them there are no tables.
    2. Definitions of resources and the scheduler object come from `qmgr`, reservations from
       `pbs_rstat`. Where these are missing or fail, the tables are without them, which is logged.
    3. Of tasks of arrays only those with vnodes are jobs of their own, as on the batch interface.
    4. Users who are neither managers nor operators are not shown all attributes of jobs: the
       select statement as submitted is used then, without the server's defaults.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.errors import ConfigError
from bridge.pbs.ifl.port import Code, IflError
from bridge.pbs.ifl.qstat_json import NotJson, read_listing, read_output, read_resources
from bridge.pbs.tables import Objects, Tables, text

LIMIT_S = 60.0
"""Maximum time of a command."""
Runner = Callable[[Sequence[str]], bytes]
"""Runs a command and returns what it printed; raises OSError or subprocess.SubprocessError."""


def find_commands(pbs_exec: str = "") -> Path | None:
    """Returns the folder of qstat and pbsnodes; None: they are found by PATH.

    Raises:
        ConfigError: they are not there.
    """
    folder = Path(pbs_exec) / "bin" if pbs_exec else None
    for name in ("qstat", "pbsnodes"):
        if shutil.which(name, path=str(folder) if folder else None) is None:
            where = f"in {folder}" if folder else "by PATH"
            raise ConfigError("PBS_EXEC", f"there is no {name} {where}: set PBS_EXEC to the folder "
                              "that PBS's commands are installed in")  # fmt: skip
    return folder


def run_command(words: Sequence[str]) -> bytes:
    """Runs a command; dates are printed in UTC, in English."""
    env = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
    done = subprocess.run(words, env=env, capture_output=True, check=False, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    if done.returncode:
        message = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        raise subprocess.SubprocessError(message or f"exit code {done.returncode}")
    return done.stdout


@dataclass
class PrintedTables:
    """The tables of one server, as its commands print them.

    Attributes:
        folder: the folder of the commands; None: by PATH.
        server: its name; empty: that of pbs.conf.
        scheduler: name of the scheduler object.
        problems: one line for everything that was repaired or left out of the last tables.
    """

    folder: Path | None
    server: str = ""
    scheduler: str = "default"
    run: Runner = run_command
    problems: list[str] = field(default_factory=list)

    def read(self, now_s: int) -> Tables:
        """Reads everything.

        Raises:
            IflError: the server does not answer, or a command prints something else.
        """
        self.problems = []
        at = (f"@{self.server}",) if self.server else ()
        servers = self._objects("Server", "qstat", "-Bf", "-F", "json", *self._named())
        name, server = next(iter(servers.items()), ("", {}))
        if not name:
            raise IflError("qstat -Bf", Code.NO_SERVER, "it names no server")
        jobs = self._objects("Jobs", "qstat", "-f", "-t", "-F", "json", *at)
        on = ("-s", self.server) if self.server else ()
        vnodes = self._objects("nodes", "pbsnodes", "-a", "-v", "-F", "json", *on)
        queues = self._objects("Queue", "qstat", "-Qf", "-F", "json", *at)
        if any("schedselect" not in job for job in jobs.values()):
            self.problems.append(
                "jobs are shown without all attributes: run this as a manager or operator of PBS"
            )
        sched = read_listing(self._text("qmgr", "-c", "list sched", *self._named()), "Sched ")
        resources = self._text("qmgr", "-c", "print resource", *self._named())
        reservations = read_listing(self._text("pbs_rstat", "-f"), "Resv ID: ")
        return Tables(
            now_s, name, server, sched.get(self.scheduler, {}), queues, vnodes,
            {job_id: job for job_id, job in jobs.items() if _is_shown(job_id, job)},
            reservations, read_resources(resources.splitlines()),
        )  # fmt: skip

    def _named(self) -> tuple[str, ...]:
        return (self.server,) if self.server else ()

    def _command(self, *words: str) -> bytes:
        name = str(self.folder / words[0]) if self.folder else words[0]
        return self.run((name, *words[1:]))

    def _objects(self, section: str, *words: str) -> Objects:
        shown = " ".join(words)
        try:
            printed = read_output(self._command(*words), section)
        except (OSError, subprocess.SubprocessError) as error:
            raise IflError(shown, Code.NO_SERVER, str(error)[:200]) from None
        except NotJson as error:
            raise IflError(shown, Code.PROTOCOL, str(error)) from None
        self.problems += [f"{shown}: {line}" for line in printed.problems]
        return printed.objects

    def _text(self, *words: str) -> str:
        try:
            return self._command(*words).decode("utf-8", "replace")
        except (OSError, subprocess.SubprocessError) as error:
            shown = " ".join(words)
            self.problems.append(f"{shown}: {str(error)[:160]}: planned without what it lists")
            return ""


def _is_shown(job_id: str, job: object) -> bool:
    """Whether the batch interface would state it as a job of its own."""
    is_task = "[" in job_id and "[]" not in job_id
    return isinstance(job, dict) and (not is_task or bool(text(job, "exec_vnode")))
