# SPDX-License-Identifier: Apache-2.0
"""No test reads a clock or waits for one, unless it is of real processes, sockets and threads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "tests/unit", "tests/properties", "tests/simulation", "tests/golden", "tests/documents",
    "schedbridge_contracts",
)  # fmt: skip
DAEMONS = "real services, agents and clients"
THREADS = "real threads: a wait of minutes that fails is one that never ends"
ALLOWED = {
    "tests/documents/test_cluster_pages.py": DAEMONS,
    "tests/durations.py": "measures the CPU time of tests",
    "tests/memory_files.py": DAEMONS,
    "tests/ran.py": "the day on which something was run",
    "tests/simulation/attackers.py": "programs of users who attack a real service",
    "tests/simulation/services.py": DAEMONS,
    "tests/simulation/test_agents.py": DAEMONS,
    "tests/simulation/test_service_accuracy.py": DAEMONS,
    "tests/simulation/test_service_attacks.py": DAEMONS,
    "tests/simulation/test_service_ending.py": DAEMONS,
    "tests/simulation/test_service_process.py": DAEMONS,
    "tests/simulation/test_service_record.py": THREADS,
    "tests/simulation/test_service_replay.py": DAEMONS,
    "tests/simulation/test_service_tls.py": DAEMONS,
    "tests/simulation/whole/__main__.py": "shows how many runs there are in a second",
    "tests/unit/agent/test_launcher_socket.py": "real sockets; that nothing else is sent",
    "tests/unit/agent/test_shares.py": "real processes, in real cgroups",
    "tests/unit/agent/trees.py": "real processes, in real cgroups",
    "tests/unit/elastic/test_run.py": "real launchers and their programs",
    "tests/unit/lab/experiments/computing.py": "a worker that waits for a file",
    "tests/unit/rpc/test_cycles.py": THREADS,
    "tests/unit/rpc/test_private_channel.py": THREADS,
    "tests/unit/state/test_memory_file.py": DAEMONS,
    "tests/unit/state/test_memory_file_later.py": THREADS,
    "tests/unit/state/test_store.py": "a real writer, which is a thread",
    "tests/unit/test_clocks.py": "examples of what is found",
    "tests/unit/test_durations.py": "tests of known CPU time",
    "tests/unit/test_interpreters.py": "real interpreters and solvers",
    "tests/unit/test_solving.py": "a real solver, in a process of its own",
}
"""Files that may, and why."""
MODULES = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
        "process_time", "thread_time", "sleep", "localtime", "gmtime",
    },
    "asyncio": {"sleep", "wait_for", "timeout"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}  # fmt: skip
WAITS = {"wait", "join", "acquire", "wait_for", "is_alive"}
IN_TEXT = re.compile(r"\b(?:time|asyncio)\.(?:time|monotonic|perf_counter|sleep)\(")


def reads_a_clock(node: ast.AST) -> bool:
    """Whether a call is of a clock, or a text holds a program with one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(IN_TEXT.search(node.value))
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id in MODULES["time"] - {"time"}
    if not isinstance(called, ast.Attribute):
        return False
    of = called.value
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return called.attr in MODULES.get(name, ())


def waits(node: ast.AST) -> bool:
    """Whether an assertion depends on what happens within some time."""
    if not isinstance(node, ast.Assert):
        return False
    calls = [call for call in ast.walk(node.test) if isinstance(call, ast.Call)]
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in WAITS
        and (call.func.attr == "is_alive" or any(map(is_time, [*call.args, *call.keywords])))
        for call in calls
    )


def is_time(given: ast.AST) -> bool:
    """Whether an argument says how long: a number, a constant or `timeout`."""
    if isinstance(given, ast.keyword):
        return given.arg == "timeout"
    if isinstance(given, ast.Name):
        return given.id.isupper() or given.id.endswith("_s")
    return isinstance(given, ast.Constant) and isinstance(given.value, int | float)


def found(text: str) -> list[int]:
    """The lines of a program that read a clock or wait."""
    nodes = ast.walk(ast.parse(text))
    return sorted({node.lineno for node in nodes if reads_a_clock(node) or waits(node)})


def files() -> Iterator[Path]:
    yield from (ROOT / "tests").glob("*.py")
    for folder in FOLDERS:
        found = sorted((ROOT / folder).rglob("*.py"))
        assert found, f"{folder} has no tests any more"
        yield from found


def test_only_named_files_read_clocks() -> None:
    lines = {str(path.relative_to(ROOT)): found(path.read_text()) for path in files()}
    assert {file: where for file, where in lines.items() if where and file not in ALLOWED} == {}
    assert [file for file in ALLOWED if not lines.get(file)] == [], "need not be allowed any more"


@pytest.mark.parametrize(
    "line",
    [
        "now = time.time()", "time.sleep(1)", "sleep(1)", "began = perf_counter()",
        "await asyncio.sleep(0)", "await asyncio.wait_for(x, 1)", "at = datetime.now(UTC)",
        "at = datetime.datetime.now()", "day = date.today()", "module.time.monotonic()",
        "assert gone.wait(30)", "assert process.wait(timeout=3) == 0", "assert not t.is_alive()",
        "run('import time\\ntime.sleep(3)')",
    ],
)  # fmt: skip
def test_what_reads_a_clock_is_found(line: str) -> None:
    assert found(f"async def test():\n    {line}") == [2]


@pytest.mark.parametrize(
    "line",
    [
        "clock.sleep(1)", "patch.setattr(module.time, 'monotonic', lambda: 7.0)",
        "datetime(2026, 1, 1)", "thread.join()", "process.wait()", "', '.join(names)",
        "assert ', '.join(names) == ''",
    ],
)  # fmt: skip
def test_what_reads_none_is_not(line: str) -> None:
    assert found(f"async def test():\n    {line}") == []
