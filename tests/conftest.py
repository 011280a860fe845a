# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests."""

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from schedbridge_contracts import crosses
from tests import durations
from tests.clocks import MAY_READ

TIMES = int(os.environ.get("SCHEDBRIDGE_EXAMPLES", "0"))
"""How many times as many examples a property gets, drawn anew (`scripts/test properties`); 0: the
same ones in every run, so that a change is judged by what it changed."""

# How long an example takes says nothing of what is tested: it depends on what else runs.
settings.register_profile(
    "no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow],
    derandomize=not TIMES, database=None, print_blob=bool(TIMES),
)  # fmt: skip
settings.load_profile("no clock")

# Tests of benchmarks import their parts as the programs do.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

pytest_addoption = durations.pytest_addoption
pytest_configure = durations.pytest_configure

CLUSTERS = ("tests/integration/", "tests/real_pbs/")


def more_examples(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The properties among the tests, which get `TIMES` as many examples."""
    found = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
    for item in found:
        test = getattr(item.obj, "__func__", item.obj)
        if not hasattr(test, "_scaled"):
            given = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(
                given, max_examples=TIMES * given.max_examples, derandomize=False
            )
            test._scaled = True
    return found


def pytest_collection_modifyitems(config, items):
    crosses.refuse_shared(items)
    if TIMES:
        found = more_examples(items)
        if crosses.WHOLE:
            found += [item for item in items if crosses.has_cases(item)]
        left = set(items) - set(found)
        config.hook.pytest_deselected(items=list(left))
        items[:] = found
    for item in items:
        if item.nodeid.startswith(CLUSTERS):
            continue  # a mark would replace --reruns of `scripts/test`
        if item.nodeid.partition("::")[0] in MAY_READ:
            item.add_marker(pytest.mark.flaky(reruns=1))


CONNECTING = {"asyncio", "grpc", "socket", "subprocess", "threading"}


def pytest_runtest_teardown(item, nextitem):
    """After the last test of a file with connections, what it left is destroyed.

    An object that complains when it is destroyed fails the test that runs at that moment: so it is
    one of the file that left it.
    """
    is_last = nextitem is None or nextitem.path != item.path
    if is_last and CONNECTING & vars(getattr(item, "module", None) or object).keys():
        gc.collect()


HANGS_AFTER_S = 300


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Makes a test fail that waits forever for another process, so that the others still run."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"the test hangs: not over after {HANGS_AFTER_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANGS_AFTER_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
