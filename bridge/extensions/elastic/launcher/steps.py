# SPDX-License-Identifier: Apache-2.0
"""The job steps of a run: started once by name, watched, ended.

Each is an srun below a shell, which records its process id and its exit code. Both outlive the
launcher: a restarted one finds the state of the step in the step's directory.

Source: measured settings of srun are in docs/design/0009-elastic-jobs.md.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from bridge.extensions.elastic.launcher.options import PREFIX, Folder, Options, clean_environment
from bridge.extensions.elastic.launcher.record import StartStep, StepEnded, StopStep

SHELL: Final = """
step=$1 pause=$2; shift 2
mkdir "$step" 2>/dev/null || exit 0
trap : TERM INT HUP QUIT USR1 USR2
ln -s $$ "$step/pid"
mkdir "$step/begun" 2>/dev/null || exit 0
sleep "$pause"
"$@"
ln -s $? "$step/code"
"""
"""Numbers are written as links, which are atomic, even if the disk is full."""
CANCEL: Final = """
found=$(squeue -h -s -j "$1" -o '%i %j' | while read -r step name; do
    [ "$name" != "$2" ] || echo "$5.${step##*.}"; done)
if [ "$found" ]; then scancel --signal="$3" $found
elif [ "$4" != 0 ]; then kill -s "$3" -- "-$4" 2>/dev/null; fi
"""
"""Steps of a task of an array are listed by its name, as its number may stand for the whole array;
scancel takes steps by that number only."""
NO_PID_S: Final = 10.0
"""A shell that has not begun its step after this time must not begin it any more."""


class Steps:
    def __init__(self, folder: Folder, options: Options) -> None:
        self.folder, self.options = folder, options
        self._pidfds: dict[str, int] = {}
        self._awaited: dict[str, float] = {}
        self._hard: set[str] = set()

    # ------------------------------------------------------------------ start and end

    def start(self, action: StartStep) -> None:
        """Starts a step, unless one of this name was started before."""
        directory = self.folder.steps / action.name
        self._awaited.setdefault(action.name, time.monotonic())
        if directory.exists():
            return
        hosts = self._hosts(action.name)
        env = clean_environment()
        env.setdefault("MPIR_CVAR_CH4_NETMOD", "ofi")  # the one in which MPICH connects processes
        env[PREFIX] = str(self.folder.socket)
        env[f"{PREFIX}_NODES"] = str(self.folder.nodes)
        env[f"{PREFIX}_TCP"], env[f"{PREFIX}_TOKEN"] = self.options.tcp, self.options.token
        if self.options.mpi_time:
            env["LD_PRELOAD"] = f"{self.options.mpi_time} {env.get('LD_PRELOAD', '')}".rstrip()
        settings = dict(action.env)
        for name, value in settings.items():
            env[f"{PREFIX}_{name}"] = value
        command = self._command(action, settings)
        if "-m" in command:
            each = int(settings["SIZE"]) // len(action.nodes)
            try:
                hosts.write_text("".join(f"{node}\n" * each for node in action.nodes))
            except OSError as error:  # it is taken for one that has failed to begin
                with contextlib.suppress(OSError):
                    print(f"schedbridge run: {hosts}: {error.strerror}", file=sys.stderr)
                return
            env["SLURM_HOSTFILE"] = str(hosts)
        self.folder.steps.mkdir(exist_ok=True)
        subprocess.Popen(
            ["/bin/sh", "-c", SHELL, "sh", str(directory), str(action.pause_s), *command],
            env=env, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def forget(self, known: Collection[str]) -> None:
        """Removes the files of steps that the record no longer has, once their shells have ended.

        A shell that has not written its code may not have begun: it would begin in a new directory.
        """
        if not self.folder.steps.exists():
            return
        for path in self.folder.steps.iterdir():
            if path.name not in known and (path / "code").is_symlink():
                shutil.rmtree(path, ignore_errors=True)
                with contextlib.suppress(OSError):
                    self._hosts(path.name).unlink(missing_ok=True)

    def _hosts(self, name: str) -> Path:
        return self.folder.path / f"{name}.hosts"

    def _command(self, action: StartStep, settings: dict[str, str]) -> list[str]:
        """The srun of a step, which does not depend on the script's own environment."""
        srun = ["srun", f"--jobid={self.options.job}", "--overlap", "-Q"]
        srun += ["-J", self._title(action.name)]
        if action.role in ("worker", "clean") or action.mpi == "none":
            count = str(len(action.nodes))
            srun += ["-N", count, "-n", count, "-w", ",".join(action.nodes), "--mpi=none"]
            if action.role == "clean":
                return [*srun, "rm", "-rf", "--", settings["PARKED"]]
            if action.role == "worker":
                return [*srun, *self.options.worker]
            return [*srun, *self.options.program]
        srun += ["-n", settings["SIZE"], "-m", "arbitrary", f"--mpi={action.mpi}"]
        # A process that fails ends its step at once; one that leaves ends nothing.
        srun += ["--kill-on-bad-exit=1", "--wait=0"]
        if action.role == "test":
            srun += ["--overcommit"]  # two tasks, whatever the job has
        elif self.options.cpus:
            srun += ["-c", str(self.options.cpus)]
        return [*srun, *self.options.program]

    def stop(self, action: StopStep) -> None:
        """Ends a step: its tasks get SIGTERM; hard: by force."""
        if not action.hard:
            self._cancel(action.name, "TERM")
        elif action.name not in self._hard and self._pid(action.name) is not None:
            self._hard.add(action.name)
            self.signal(action.name, signal.SIGQUIT)  # srun kills the step and waits for it
        else:
            self._cancel(action.name, "KILL")
            self.signal(action.name, signal.SIGKILL)

    def _cancel(self, name: str, number: str) -> None:
        """Has Slurm send a signal to the tasks of a step; srun itself would kill them at SIGTERM.

        If Slurm does not know the step yet, its srun gets the signal. Does not wait.
        """
        pid = str(self._pid(name) or 0)
        subprocess.Popen(
            ["/bin/sh", "-c", CANCEL, "sh", self.options.name, self._title(name), number, pid,
             self.options.job],
            env=clean_environment(), stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _title(self, name: str) -> str:
        """A step's name in Slurm, unique among the runs of a job."""
        return f"{name}-{self.folder.run}"

    def pass_on(self, name: str, number: int) -> None:
        """Forwards a signal of the batch script to a step."""
        if number in (signal.SIGTERM, signal.SIGINT):
            self._cancel(name, signal.Signals(number).name.removeprefix("SIG"))
        else:
            self.signal(name, number)

    def signal(self, name: str, number: int) -> None:
        """Sends a signal to the srun of a step."""
        pid = self._pid(name)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)

    # ------------------------------------------------------------------ watch

    def waiting(self) -> bool:
        """Whether a known step has no process yet; then `ended` must be called soon."""
        return bool(self._awaited)

    def pidfds(self) -> list[int]:
        """File descriptors that become readable when a step ends."""
        return list(self._pidfds.values())

    def ended(self) -> Iterator[StepEnded]:
        """The steps that have ended since the last call."""
        for name, since_s in list(self._awaited.items()):
            if not self._begun(name, since_s):
                continue
            pid = self._pid(name)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._pidfds[name] = os.pidfd_open(pid)
            del self._awaited[name]
            if name not in self._pidfds:
                yield StepEnded(name, self._code(name))
        for name, pidfd in list(self._pidfds.items()):
            if not _gone(pidfd):
                continue
            os.close(pidfd)
            del self._pidfds[name]
            yield StepEnded(name, self._code(name))

    def _begun(self, name: str, since_s: float) -> bool:
        """Whether a step has begun, or never will.

        The directory `begun` decides, and only one of the two makes it: the shell, when `pid` is
        written, or the launcher, when it gives up. So no step begins that was taken for ended.
        """
        begun = self._path(name) / "begun"
        if not begun.exists():
            if time.monotonic() - since_s < NO_PID_S:
                return False
            with contextlib.suppress(FileExistsError):
                begun.mkdir(parents=True)
        return True

    def _path(self, name: str) -> Path:
        return self.folder.steps / name

    def _pid(self, name: str) -> int | None:
        """The step's shell; none if it has not begun or has ended (process ids are reused)."""
        path = self._path(name)
        try:
            pid = int((path / "pid").readlink().name)
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(str(path)) in command.split(b"\0") else None

    def _code(self, name: str) -> int:
        try:
            return int((self._path(name) / "code").readlink().name)
        except (OSError, ValueError):
            return 137  # its shell was killed


def _gone(pidfd: int) -> bool:
    import select  # noqa: PLC0415 - the only use

    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
