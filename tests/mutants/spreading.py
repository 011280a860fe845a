# SPDX-License-Identifier: Apache-2.0
"""Tries things in several copies of the tree at a time."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tests.mutants.running import Copy

Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(
    copies: Sequence[Copy],
    items: Iterable[Item],
    attempt: Callable[[Copy, Item], Result],
    needs_first: Callable[[Item], bool] = lambda _: False,
) -> Iterator[tuple[Item, Result]]:
    """Yields each item with its result, as they come.

    Args:
        copies: each is used for one item at a time.
        items: in this order.
        attempt: what to do with an item in a copy.
        needs_first: whether an item can be tried in the first copy only.
    """
    todo: dict[bool, deque[Item]] = {True: deque(), False: deque()}
    for item in items:
        todo[needs_first(item)].append(item)
    left = sum(map(len, todo.values()))
    done: queue.Queue[tuple[Item, Result] | BaseException] = queue.Queue()

    def work(copy: Copy, *, is_first: bool) -> None:
        try:
            while True:
                item = (todo[True] if is_first and todo[True] else todo[False]).popleft()
                done.put((item, attempt(copy, item)))
        except IndexError:
            pass
        except BaseException as error:  # raised below
            done.put(error)

    for number, copy in enumerate(copies):
        threading.Thread(
            target=work, args=(copy,), kwargs={"is_first": number == 0}, daemon=True
        ).start()
    for _ in range(left):
        pair = done.get()
        if isinstance(pair, BaseException):
            raise pair
        yield pair
