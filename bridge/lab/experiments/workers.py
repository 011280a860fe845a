# SPDX-License-Identifier: Apache-2.0
"""Where cells are computed: processes of this machine, a running Dask, or jobs of Slurm.

Rules
    1. A worker computes one cell at a time, in one thread.
    2. The scheduler that is started here gives a worker its next cell only when it has finished the
       last one: a cell that kills its worker takes no other one with it.
    3. Connections are encrypted with credentials of this run alone, because whoever reaches the
       scheduler can run code as its user. A running Dask has its own.
    4. An interrupt from the terminal does not reach the workers: the client decides.
"""

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bridge.errors import ConfigError, Unreachable
from bridge.extras import need
from bridge.interpreter import SAFE_PATH, safe_children

_EXTRA: Final = "experiments"
_CONNECTING_S: Final = 15
_LOGGERS: Final = ("distributed", "distributed.client", "tornado", "asyncio")
_LOOPBACK: Final = "127.0.0.1:0"
_ADDRESS: Final = re.compile(r"[a-z]+://\S+:\d{1,5}")
_ASKING_S: Final = 30
_REPLACING: Final = "20 s"


@dataclass(frozen=True)
class SlurmJobs:
    """The jobs of Slurm that are workers.

    Attributes:
        cores: CPUs of each, and workers in it.
        memory: the memory of each, as Dask writes it: `4 GiB`.
        walltime: `HH:MM:SS`.
        partition, account: partition and account of the jobs; empty: Slurm's default.
    """

    jobs: int = 1
    cores: int = 1
    memory: str = "2 GiB"
    walltime: str = "01:00:00"
    partition: str = ""
    account: str = ""


@contextmanager
def local(workers: int, retries: int) -> Iterator[Any]:
    """A client of as many processes of this machine.

    Args:
        retries: how many workers may die of one cell, beside the first.
    """
    distributed = _dask()
    with (
        _configured(retries),
        safe_children(),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address=_LOOPBACK,
            worker_dashboard_address=_LOOPBACK,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        _client(cluster) as client,
    ):
        yield client


@contextmanager
def running(address: str) -> Iterator[Any]:
    """A client of a Dask scheduler that runs already.

    Raises:
        ConfigError: it is no address.
        Unreachable: it does not answer.
    """
    _dask()
    if not _ADDRESS.fullmatch(address):
        raise ConfigError("scheduler", f"must be tcp://HOST:PORT or tls://..., not '{address:.80}'")
    with _quiet():
        try:
            context = _client(address)
        except (OSError, ValueError) as error:
            raise Unreachable(
                f"--scheduler {address}: no Dask scheduler answers there within {_CONNECTING_S} s"
                f" ({error or type(error).__name__}); as in tcp://HOST:8786"
            ) from None
        with context as client:
            yield client


@contextmanager
def slurm(wished: SlurmJobs, retries: int, folder: Path) -> Iterator[Any]:
    """A client of jobs of Slurm, which are cancelled at the end.

    Args:
        retries: see `local`.
        folder: the folder of results, which the nodes see, too: for their logs and the credentials.

    Raises:
        ConfigError: Dask or Slurm refuses a value.
        Unreachable: there is no Slurm here.
    """
    _dask()
    if (sbatch := shutil.which("sbatch")) is None:
        raise Unreachable("--on slurm: there is no command sbatch here")
    made = _slurm_cluster()
    shared = folder.absolute()
    shared.mkdir(parents=True, exist_ok=True)
    with _configured(retries), contextlib.ExitStack() as stack:
        # In a folder of their own: Dask leaves them to the end of the process, or longer.
        secrets = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix=".credentials-", dir=shared, ignore_cleanup_errors=True
            )
        )
        try:
            cluster = stack.enter_context(
                made(
                    queue=wished.partition or None,
                    account=wished.account or None,
                    cores=wished.cores,
                    processes=wished.cores,
                    memory=wished.memory,
                    walltime=wished.walltime,
                    job_name="schedbridge-experiment",
                    job_script_prologue=[*_prologue(), f"export {SAFE_PATH}=1"],
                    log_directory=str(shared / "slurm-logs"),
                    shared_temp_directory=secrets,
                    security=True,
                    silence_logs=logging.CRITICAL,
                    scheduler_options={"dashboard_address": _LOOPBACK},
                )
            )
            stack.callback(_close_files, cluster)
            _need_accepted(sbatch, cluster.job_script())
            cluster.scale(jobs=wished.jobs)
            # Jobs that end (killed, or out of time) are replaced, not more often than that.
            cluster.adapt(minimum_jobs=wished.jobs, maximum_jobs=wished.jobs, interval=_REPLACING)
        except (ValueError, RuntimeError) as error:
            raise ConfigError("on slurm", str(error).splitlines()[0]) from None
        yield stack.enter_context(_client(cluster))


def _close_files(cluster: Any) -> None:
    """Removes the credentials' files, which the cluster would try again after their folder."""
    for name, value in vars(cluster).items():
        if name.startswith("_job_") and hasattr(value, "delete"):
            value.close()


def _slurm_cluster() -> Any:
    """The class of Dask clusters on Slurm.

    Raises:
        ConfigError: it is not installed.
    """
    need("dask_jobqueue", _EXTRA, "on")
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        from dask_jobqueue import SLURMCluster  # type: ignore[attr-defined]  # noqa: PLC0415
    finally:  # the import replaces them
        for each, handler in before.items():
            signal.signal(each, handler)
    return SLURMCluster


def _prologue() -> list[str]:
    """The lines that the site's configuration of Dask puts before its workers."""
    import dask  # noqa: PLC0415 - an extra

    return list(dask.config.get("jobqueue.slurm.job-script-prologue", None) or ())


def _need_accepted(sbatch: str, script: str) -> None:
    """Asks Slurm whether it would take the job: a refusal later would look like a long wait.

    Raises:
        ConfigError: it would not.
    """
    done = subprocess.run(
        [sbatch, "--test-only"],
        input=script, capture_output=True, text=True, check=False, timeout=_ASKING_S,
    )  # fmt: skip
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ConfigError("on slurm", f"sbatch refuses the job: {(lines or ['no reason'])[-1]}")


def _dask() -> ModuleType:
    """Dask's scheduler and client.

    Raises:
        ConfigError: it is not installed.
    """
    need("distributed", _EXTRA, "experiment")
    import distributed  # noqa: PLC0415 - an extra, and slow to load

    module: ModuleType = distributed
    return module


def _client(where: Any) -> Any:
    """A client whose workers ignore interrupts."""
    distributed = _dask()
    base: Any = distributed.WorkerPlugin

    class Uninterrupted(base):  # type: ignore[misc]
        """Keeps interrupts of the terminal from a worker (rule 4)."""

        name = "schedbridge-uninterrupted"

        def setup(self, worker: object) -> None:  # noqa: ARG002 - Dask's signature
            """Runs in the main thread of each worker's process."""
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    client = distributed.Client(where, timeout=_CONNECTING_S, set_as_default=False)
    client.register_plugin(Uninterrupted())
    return client


@contextmanager
def _configured(retries: int) -> Iterator[None]:
    """Dask's settings for a scheduler in this process."""
    import dask  # noqa: PLC0415 - an extra

    settings = {
        "distributed.scheduler.allowed-failures": retries,
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.worker.daemon": False,  # policies may start a solver
    }
    with dask.config.set(settings), _quiet():
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own messages are not for users: what they say is in the cells and on the screen."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
