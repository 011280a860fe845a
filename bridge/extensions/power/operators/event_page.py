# SPDX-License-Identifier: Apache-2.0
"""Takes events of demand response over HTTP, in the operators' process.

| request | answer |
|---|---|
| POST /events | 201: its bounds are in force from the next cycle on; `Location` names it |
| PUT /events/ID | 200: the bounds of that event are replaced |
| DELETE /events/ID | 204: its bounds are withdrawn |

Rules
    1. Every request needs the token of the file (`Authorization: Bearer TOKEN`), which is read
       again when it changes. Without a valid file, every request is refused.
    2. A refused request changes nothing. If `MAX_OPEN` callers have not sent the token, the oldest
       of them is sent away for the next; a caller with the token never is.
    3. The id of an event follows from its contents, so a repeated event changes nothing.
"""

import hashlib
import hmac
import json
import logging
import os
import re
import stat
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from bridge import files
from bridge.errors import ConfigError
from bridge.extensions.power.corridor.entry_log import Wish
from bridge.extensions.power.corridor.open_adr import read_event
from bridge.rpc.operators.http_pages import Exchange, HttpPages, HttpRefusal, Reply
from bridge.rpc.transport.private_channel import RemoteRefusal

_log = logging.getLogger(__name__)

MAX_BODY, MAX_OPEN = 64 << 10, 32
MIN_TOKEN = 16
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EVENTS: Final = "/events"

Carry = Callable[[str, str, Sequence[Wish]], Awaitable[int]]
"""An event's id, its name and its bounds (none: withdraw it) to how many entries changed."""


class EventPage:
    """Answers HTTP requests on events."""

    def __init__(self, carry: Carry, token_file: Path) -> None:
        """Prepares it.

        Args:
            carry: puts an event's bounds in force.
            token_file: holds the token.
        """
        self._carry = carry
        self._token_file = token_file

    async def answer(self, exchange: Exchange) -> Reply:
        """Answers one request.

        Raises:
            HttpRefusal: it changed nothing.
        """
        self._authorise(exchange.field("authorization"))
        exchange.admit()
        try:
            return await self._change(exchange)
        except RemoteRefusal as refusal:
            known = refusal.code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
            status = HTTPStatus.CONFLICT if known else HTTPStatus.SERVICE_UNAVAILABLE
            raise HttpRefusal(status, refusal.text) from None

    async def _change(self, exchange: Exchange) -> Reply:
        method, path = exchange.method, exchange.path
        number = path.removeprefix(f"{_EVENTS}/")
        if path == _EVENTS:
            if method != "POST":
                raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "POST an event here")
        elif path.startswith(f"{_EVENTS}/") and _ID.fullmatch(number):
            if method == "DELETE":
                if not await self._carry(number, "", ()):
                    detail = f"there is no event '{number}' in force"
                    raise HttpRefusal(HTTPStatus.NOT_FOUND, detail)
                return Reply(HTTPStatus.NO_CONTENT)
            if method != "PUT":
                raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "PUT or DELETE an event here")
        else:
            detail = "there are POST /events, PUT and DELETE /events/ID"
            raise HttpRefusal(HTTPStatus.NOT_FOUND, detail)
        body = await exchange.read_body(MAX_BODY)
        try:
            name, wishes = read_event(body)
        except ConfigError as error:
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, str(error)) from None
        if method == "POST":
            number = hashlib.sha256(body).hexdigest()[:16]
        await self._carry(number, name, wishes)
        event = {"id": number, "objectType": "EVENT", **json.loads(body)} | {"id": number}
        status = HTTPStatus.CREATED if method == "POST" else HTTPStatus.OK
        where = ("Location", f"{_EVENTS}/{number}")
        return Reply(status, json.dumps(event).encode(), fields=(where,))

    def _authorise(self, given: str) -> None:
        scheme, _, token = given.partition(" ")
        wanted = _token(self._token_file)
        if not wanted:
            detail = "no token is set up: see the service's log"
            raise HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, detail)
        same = hmac.compare_digest(token.strip().encode(), wanted)
        if scheme.lower() != "bearer" or not same:
            detail = "send the token: 'Authorization: Bearer TOKEN'"
            raise HttpRefusal(HTTPStatus.UNAUTHORIZED, detail)


def event_page(carry: Carry, token_file: Path) -> HttpPages:
    """The page of events; see `EventPage`."""
    return HttpPages(EventPage(carry, token_file).answer, MAX_OPEN)


def _token(path: Path) -> bytes:
    """The token of a file; empty: there is no valid one, and the log says why."""
    try:
        found = path.stat()
        if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError("", "must belong to root or the service's user, mode 0600")
        token = files.read_bytes(path, 4096).strip()
        if len(token) < MIN_TOKEN:
            raise ConfigError("", f"must hold at least {MIN_TOKEN} characters")
    except (OSError, ConfigError) as error:
        _log.error("power.events: token file %s: %s", path, error)
        return b""
    return token
