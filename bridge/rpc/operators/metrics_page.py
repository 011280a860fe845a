# SPDX-License-Identifier: Apache-2.0
"""Serves the page /metrics to everyone who can reach the address, in the operators' process."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from bridge.rpc.operators.http_pages import Exchange, HttpPages, HttpRefusal, Reply

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_page(page: Callable[[], Awaitable[bytes]], max_open: int) -> HttpPages:
    """The page.

    Args:
        max_open: connections at a time.
    """

    async def answer(exchange: Exchange) -> Reply:
        if exchange.method not in ("GET", "HEAD"):
            raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "GET /metrics")
        if exchange.path not in ("/", "/metrics"):
            raise HttpRefusal(HTTPStatus.NOT_FOUND, "there is GET /metrics")
        return Reply(HTTPStatus.OK, await page(), _CONTENT_TYPE)

    return HttpPages(answer, max_open)
