# SPDX-License-Identifier: Apache-2.0
"""The batch interface by ctypes on libpbs.so.0.

Calls release Python's lock, and the library locks each connection, so that threads with a
connection of their own do not wait for each other. The library checks attributes on the client's
side by freeing values that it did not allocate: that is switched off.
"""

import contextlib
import ctypes
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bridge.core._core import read_status_lists
from bridge.errors import ConfigError
from bridge.pbs.ifl.port import Code, Command, IflError, ReceivedCommand
from bridge.pbs.ifl.structures import AT_LEAST, Attribute, AttributeList, decoded
from bridge.pbs.tables import Attributes, Objects

NAME = "libpbs.so.0"
_TEXT, _INT = ctypes.c_char_p, ctypes.c_int
_LIST, _FOUND = ctypes.POINTER(Attribute), ctypes.c_void_p
_AT_ONCE = 50
"""Jobs in one query by their ids."""
_SET, _SERVER = 2, 0
"""MGR_CMD_SET and MGR_OBJ_SERVER."""
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pbs_connect": (_INT, (_TEXT,)),
    "pbs_disconnect": (_INT, (_INT,)),
    "pbs_register_sched": (_INT, (_TEXT, _INT, _INT)),
    "pbs_geterrmsg": (_TEXT, (_INT,)),
    "pbs_statserver": (_FOUND, (_INT, _LIST, _TEXT)),
    "pbs_statsched": (_FOUND, (_INT, _LIST, _TEXT)),
    "pbs_statque": (_FOUND, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_statvnode": (_FOUND, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_statresv": (_FOUND, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_statrsc": (_FOUND, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_statjob": (_FOUND, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_selstat": (_FOUND, (_INT, _LIST, _LIST, _TEXT)),
    "pbs_statfree": (None, (_FOUND,)),
    "pbs_asyrunjob_ack": (_INT, (_INT, _TEXT, _TEXT, _TEXT)),
    "pbs_asyalterjob": (_INT, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_manager": (_INT, (_INT, _INT, _INT, _TEXT, _LIST, _TEXT)),
    "pbs_alterjob": (_INT, (_INT, _TEXT, _LIST, _TEXT)),
    "pbs_sigjob": (_INT, (_INT, _TEXT, _TEXT, _TEXT)),
    "pbs_rerunjob": (_INT, (_INT, _TEXT, _TEXT)),
    "pbs_deljob": (_INT, (_INT, _TEXT, _TEXT)),
    "pbs_relnodesjob": (_INT, (_INT, _TEXT, _TEXT, _TEXT)),
    "pbs_confirmresv": (_INT, (_INT, _TEXT, _TEXT, ctypes.c_ulong, _TEXT)),
    "pbs_defschreply": (_INT, (_INT, _INT, _TEXT, _INT, _TEXT, _TEXT)),
    "__pbs_errno_location": (ctypes.POINTER(_INT), ()),
    "DIS_tcp_funcs": (None, ()),
    "disrsl": (ctypes.c_long, (_INT, ctypes.POINTER(_INT))),
    "disrst": (ctypes.c_void_p, (_INT, ctypes.POINTER(_INT))),
    "diswsl": (_INT, (_INT, ctypes.c_long)),
    "dis_flush": (_INT, (_INT,)),
    "set_no_attribute_verification": (None, ()),
}


def find_library(pbs_exec: str = "") -> Path:
    """Returns the path of libpbs.so.0.

    Args:
        pbs_exec: where PBS is installed; empty: PBS_EXEC of the environment or of pbs.conf.

    Raises:
        ConfigError: it is not there.
    """
    folder = Path(
        pbs_exec or os.environ.get("PBS_EXEC", "") or conf_value("PBS_EXEC") or "/opt/pbs"
    )
    found = folder / "lib" / NAME
    if not found.exists():
        raise ConfigError(
            "PBS_EXEC",
            f"{found} does not exist: set PBS_EXEC to the folder that PBS is installed in; to plan "
            "and explain without starting jobs, 'pbs-link --read-only' needs only qstat and "
            "pbsnodes",
        )
    return found


def conf_value(name: str) -> str:
    """Returns a value of pbs.conf (PBS_CONF_FILE, or /etc/pbs.conf); empty: it is not there."""
    path = Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf"))
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == name:
            return value.strip()
    return ""


class Library:
    """libpbs; an `Ifl`."""

    def __init__(self, path: Path) -> None:
        """Loads it.

        Raises:
            ConfigError: it cannot be loaded, or lacks a function.
        """
        try:
            self._lib = ctypes.CDLL(str(path))
        except OSError as error:
            raise ConfigError(str(path), f"cannot be loaded: {error}") from None
        self._calls: dict[str, Callable[..., Any]] = {}
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                call = self._lib[name]
            except AttributeError:
                raise ConfigError(str(path), f"lacks {name}: it is of another version") from None
            call.restype, call.argtypes = result, arguments
            self._calls[name] = call
        self._requested: dict[tuple[str, ...], AttributeList] = {}
        self._free = ctypes.CDLL(None).free
        self._free.argtypes, self._free.restype = (ctypes.c_void_p,), None
        self._calls["set_no_attribute_verification"]()

    def function(self, name: str, result: Any) -> Callable[..., Any]:
        """Returns another function of the library, for programs that measure or test."""
        call = self._lib[name]
        call.restype = result
        return call

    # ------------------------------------------------------------ connections

    def connect(self, server: str) -> int:
        """Opens a connection."""
        found = int(self._calls["pbs_connect"](server.encode() if server else None))
        if found < 0:
            raise IflError(f"connection to {server or 'the server'}", self._errno(), "refused")
        return found

    def disconnect(self, connection: int) -> None:
        """Closes it.

        The library sends a disconnect request and waits for the server to close, which it does not
        on a connection that carries commands. So the socket is shut down first.
        """
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection)) as own:
            own.shutdown(socket.SHUT_RDWR)
        self._calls["pbs_disconnect"](connection)

    def register(self, scheduler: str, primary: int, secondary: int) -> int:
        """Registers as a scheduler object."""
        return self._done("pbs_register_sched", scheduler.encode(), primary, secondary)

    def read_command(self, secondary: int) -> ReceivedCommand | None:
        """Reads a command that has arrived."""
        self._calls["DIS_tcp_funcs"]()
        problem = _INT(0)
        command = int(self._calls["disrsl"](secondary, ctypes.byref(problem)))
        if problem.value:
            return None
        if command != Command.AJOB:
            return ReceivedCommand(command)
        text = self._calls["disrst"](secondary, ctypes.byref(problem))
        if problem.value or not text:
            return None
        job_id = decoded(ctypes.string_at(text))
        self._free(text)
        return ReceivedCommand(command, job_id)

    def end_cycle(self, secondary: int) -> bool:
        """Tells the server that its command has been handled."""
        self._calls["DIS_tcp_funcs"]()
        written, flushed = self._calls["diswsl"](secondary, 0), self._calls["dis_flush"](secondary)
        return bool(written == 0 and flushed == 0)

    # ------------------------------------------------------------ queries

    def stat_server(self, connection: int) -> tuple[str, Attributes]:
        """Returns the server's name and attributes."""
        found = self._stat("server", connection, "pbs_statserver", None, None)
        return next(iter(found.items()), ("", {}))

    def stat_scheduler(self, connection: int, name: str) -> Attributes:
        return self._stat("schedulers", connection, "pbs_statsched", None, None).get(name, {})

    def stat_queues(self, connection: int) -> Objects:
        return self._stat("queues", connection, "pbs_statque", None, None, None)

    def stat_vnodes(self, connection: int) -> Objects:
        return self._stat("vnodes", connection, "pbs_statvnode", None, None, None)

    def stat_reservations(self, connection: int) -> Objects:
        return self._stat("reservations", connection, "pbs_statresv", None, None, None)

    def stat_resources(self, connection: int) -> Objects:
        return self._stat("resources", connection, "pbs_statrsc", None, None, None)

    def stat_jobs(
        self, connection: int, attributes: Sequence[str], *, changed_since_s: int = 0
    ) -> Objects:
        """Returns jobs that have not ended, arrays, and tasks that have started."""
        # Extend "S": jobs, arrays, and the tasks that hold vnodes, as pbs_sched asks for them.
        requested = self._requested.get(tuple(attributes)) or AttributeList.named(attributes)
        self._requested[tuple(attributes)] = requested
        since = AttributeList([("mtime", "", str(max(changed_since_s, 0)), AT_LEAST)])
        return self._stat("jobs", connection, "pbs_selstat", since.head, requested.head, b"S")

    def stat_ended(self, connection: int, job_ids: Sequence[str]) -> Objects:
        """Returns the server's records of ended jobs."""
        found: Objects = {}
        for at in range(0, len(job_ids), _AT_ONCE):
            named = ",".join(job_ids[at : at + _AT_ONCE]).encode()
            with contextlib.suppress(IflError):
                found |= self._stat("job", connection, "pbs_statjob", named, None, b"x")
        return found

    def _stat(self, what: str, connection: int, function: str, *arguments: Any) -> Objects:
        self._clear_errno()
        head = self._calls[function](connection, *arguments, *self._open_end(function, arguments))
        if not head:
            code = self._errno()
            if code:
                raise IflError(what, code, self._error_text(connection))
            return {}
        try:
            return read_status_lists(head)
        finally:
            self._calls["pbs_statfree"](head)

    @staticmethod
    def _open_end(function: str, arguments: tuple[Any, ...]) -> tuple[None, ...]:
        """The arguments that a query omits."""
        return (None,) * (len(_FUNCTIONS[function][1]) - 1 - len(arguments))

    # ------------------------------------------------------------ actions

    def start_cycle(self, connection: int) -> int:
        """Makes the server request a scheduling cycle of its default scheduler."""
        on = AttributeList.set_to({"scheduling": "True"})
        return self._done("pbs_manager", connection, _SET, _SERVER, b"", on.head, None)

    def run(self, connection: int, job_id: str, exec_vnode: str) -> int:
        return self._done(
            "pbs_asyrunjob_ack", connection, job_id.encode(), exec_vnode.encode(), None
        )

    def alter(self, connection: int, job_id: str, attributes: Attributes) -> int:
        """Sends new values of attributes without waiting for the answer."""
        values = AttributeList.set_to(attributes)
        return self._done("pbs_asyalterjob", connection, job_id.encode(), values.head, None)

    def alter_checked(self, connection: int, job_id: str, attributes: Attributes) -> int:
        values = AttributeList.set_to(attributes)
        return self._done("pbs_alterjob", connection, job_id.encode(), values.head, None)

    def signal(self, connection: int, job_id: str, signal: str) -> int:
        return self._done("pbs_sigjob", connection, job_id.encode(), signal.encode(), None)

    def rerun(self, connection: int, job_id: str) -> int:
        """Ends a job and puts it back into its queue."""
        return self._done("pbs_rerunjob", connection, job_id.encode(), None)

    def delete(self, connection: int, job_id: str, text: str) -> int:
        return self._done("pbs_deljob", connection, job_id.encode(), text.encode() or None)

    def release_nodes(self, connection: int, job_id: str, vnodes: str) -> int:
        """Takes vnodes from a running job."""
        return self._done("pbs_relnodesjob", connection, job_id.encode(), vnodes.encode(), None)

    def confirm_reservation(
        self, connection: int, name: str, location: str, start_s: int, extend: str
    ) -> int:
        """Confirms or denies a reservation."""
        return self._done(
            "pbs_confirmresv", connection, name.encode(), location.encode(), start_s,
            extend.encode(),
        )  # fmt: skip

    def answer_run(self, connection: int, job_id: str, code: int, message: str) -> int:
        """Answers an operator who waits in qrun."""
        return self._done(
            "pbs_defschreply", connection, int(Command.AJOB), job_id.encode(), code,
            message.encode() or None, None,
        )  # fmt: skip

    # ------------------------------------------------------------ errors

    def _done(self, function: str, *arguments: Any) -> int:
        self._clear_errno()
        result = int(self._calls[function](*arguments))
        if result == 0:
            return Code.NONE
        return self._errno() or (result if result > 0 else Code.LOST)

    def _errno(self) -> int:
        return int(self._calls["__pbs_errno_location"]()[0])

    def _clear_errno(self) -> None:
        self._calls["__pbs_errno_location"]()[0] = 0

    def _error_text(self, connection: int) -> str:
        return decoded(self._calls["pbs_geterrmsg"](connection)).strip()
