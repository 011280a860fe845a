# SPDX-License-Identifier: Apache-2.0
"""No test reads a clock or waits for one, unless it is of real processes, sockets and threads.

And no test judges how long something took, whoever has measured it, on clusters neither.
"""

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from itertools import pairwise
from pathlib import Path

from schedbridge_contracts.crosses import each
from tests.clocks import MAY_READ

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "tests/unit", "tests/properties", "tests/simulation", "tests/golden", "tests/documents",
    "tests/fuzz", "schedbridge_contracts",
)  # fmt: skip
MODULES = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
        "process_time", "thread_time", "sleep", "localtime", "gmtime",
    },
    "asyncio": {"sleep", "wait_for", "timeout"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}  # fmt: skip
WAITS = {"acquire", "alarm", "communicate", "join", "setitimer", "settimeout", "wait", "wait_for"}
BOUNDS = {"timeout", "timeout_s", "wait_s"}
IN_TEXT = re.compile(r"\b(?:time|asyncio)\.(?:time|monotonic|perf_counter|sleep)\(")
MEASURED = re.compile(r"(^|_)(cpu|cycle|decision|elapsed|plan|spent|took|wall)_m?s$|^_ms$")


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
    return called.attr in MODULES.get(name_of(called.value), ())


def waits(node: ast.AST) -> bool:
    """Whether a call gives up after some time, or an assertion asks what still runs."""
    if isinstance(node, ast.Assert):
        called = [call.func for call in ast.walk(node.test) if isinstance(call, ast.Call)]
        return "is_alive" in map(name_of, called)
    if not isinstance(node, ast.Call):
        return False
    if any(named.arg in BOUNDS and is_time(named.value) for named in node.keywords):
        return True
    name = name_of(node.func)
    if name == "stop":
        return any(named.arg == "grace_s" for named in node.keywords)
    is_text = isinstance(getattr(node.func, "value", None), ast.Constant)  # ", ".join(NAMES)
    return name in WAITS and not is_text and any(map(is_time, node.args))


def name_of(node: ast.AST) -> str:
    """The last name of `a.b.name`."""
    return getattr(node, "attr", None) or getattr(node, "id", "")


def is_time(given: ast.AST) -> bool:
    """Whether an argument says how long: a number above 0, or the name of one."""
    if isinstance(given, ast.Constant):
        return isinstance(given.value, int | float) and given.value > 0
    name = name_of(given)
    return name.isupper() or name.endswith(("_s", "timeout"))


def is_span(value: ast.AST) -> bool:
    """Whether a value is the difference of a clock's time and another one."""
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Sub)
        and (reads_a_clock(value.left) or reads_a_clock(value.right))
    )


def is_measured(value: ast.AST, spans: Set[str]) -> bool:
    """Whether a value says how long something took; how many of these there are does not."""
    if isinstance(value, ast.Call) and name_of(value.func) == "len":
        return False
    word = value.value if isinstance(value, ast.Constant) else name_of(value)
    named = isinstance(word, str) and (word in spans or bool(MEASURED.search(word)))
    parts = ast.iter_child_nodes(value)
    return named or is_span(value) or any(is_measured(part, spans) for part in parts)


def judged(tree: ast.AST) -> list[int]:
    """The lines that assert a maximum of how long something took."""
    nodes = list(ast.walk(tree))
    spans = {
        name_of(target)
        for node in nodes
        if isinstance(node, ast.Assign) and is_span(node.value)
        for target in node.targets
    }
    asserted = (part for node in nodes if isinstance(node, ast.Assert) for part in ast.walk(node))
    return sorted(
        {
            compared.lineno
            for compared in asserted
            if isinstance(compared, ast.Compare)
            for less, more in ordered(compared)
            if is_measured(less, spans) and is_time(more) and not is_measured(more, spans)
        }
    )


def ordered(compared: ast.Compare) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The pairs of a comparison of which the second is the greater one."""
    values = [compared.left, *compared.comparators]
    for (left, right), how in zip(pairwise(values), compared.ops, strict=True):
        if isinstance(how, ast.Lt | ast.LtE):
            yield left, right
        elif isinstance(how, ast.Gt | ast.GtE):
            yield right, left


@cache
def lines_of(tree: ast.AST) -> frozenset[int]:
    """The lines that read a clock or wait."""
    return frozenset(node.lineno for node in ast.walk(tree) if reads_a_clock(node) or waits(node))


@cache
def imported(tree: ast.AST) -> list[tuple[str, str, ast.ImportFrom]]:
    """What comes from other modules: as what, and from where."""
    return [
        (name.asname or name.name, f"{node.module}.{name.name}", node)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for name in node.names
    ]


@cache
def parsed(path: Path) -> ast.Module:
    """A file of tests."""
    return ast.parse(path.read_text())


@cache
def waiting_names(module: str) -> frozenset[str]:
    """What a file of tests offers that waits when it is used: by itself, or through the others."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not module.startswith("tests.") or not path.exists():
        return frozenset()
    tree = parsed(path)
    offered = {node.name: node for node in tree.body if getattr(node, "name", None)}
    waiting = {name for name, node in offered.items() if lines_of(node)}
    waiting |= {name for name, whole, _ in imported(tree) if is_waiting(whole)}
    if not waiting:
        return frozenset()
    calls = {
        name: {name_of(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
        for name, node in offered.items()
    }
    while more := {name for name in calls if calls[name] & waiting} - waiting:
        waiting |= more
    return frozenset(waiting)


def is_waiting(whole: str) -> bool:
    """Whether what is imported waits when it is used."""
    module, _, name = whole.rpartition(".")
    return name in waiting_names(module)


def found(tree: ast.Module) -> list[int]:
    """The lines of a program that read a clock or wait, or import what does."""
    through_others = {node.lineno for _, whole, node in imported(tree) if is_waiting(whole)}
    return sorted(set().union(through_others, *map(lines_of, tree.body)))


def tree_of(folder: str) -> list[Path]:
    """The programs in a folder and in those below."""
    there = sorted((ROOT / folder).rglob("*.py"))
    assert there, f"{folder} has no tests any more"
    return there


def files() -> Iterator[Path]:
    yield from (ROOT / "tests").glob("*.py")
    for folder in FOLDERS:
        yield from tree_of(folder)


def test_only_named_files_read_clocks() -> None:
    """Slow: parses every test."""
    own = Path(__file__).resolve()
    lines = {str(p.relative_to(ROOT)): found(parsed(p)) for p in files() if p != own}
    assert {file: where for file, where in lines.items() if where and file not in MAY_READ} == {}
    assert [file for file in MAY_READ if not lines.get(file)] == [], "need not be listed any more"


def test_nothing_judges_how_long_something_took() -> None:
    """Slow: parses every test."""
    own = Path(__file__).resolve()
    everywhere = (path for root in ("tests", "schedbridge_contracts") for path in tree_of(root))
    lines = {str(p.relative_to(ROOT)): judged(parsed(p)) for p in everywhere if p != own}
    assert {file: where for file, where in lines.items() if where} == {}


@each(
    line=[
        "assert np.median(served.decision_ms) < 30", "assert 30 > max(served.decision_ms)",
        "assert 0 < result[f'{kernel}_ms'] < 1000", "assert found['cpu_ms'] <= MAX_MS",
        "assert time.monotonic() - began < 5", "assert run.wall_s < limit_s",
        "took = perf_counter() - began; assert took < 3",
    ]
)  # fmt: skip
def test_a_bound_on_a_measured_time_is_found(line: str) -> None:
    assert judged(ast.parse(f"def test():\n    {line}")) == [2]


@each(
    line=[
        "assert len(served.decision_ms) < 30", "assert found['cpu_ms'] > 0", "assert wait_s < 30",
        "assert time.monotonic() < deadline", "assert one.wall_s >= one.plan_s > 0",
        "left = until - began; assert left < 3",
    ]
)  # fmt: skip
def test_patience_and_counts_are_no_such_bound(line: str) -> None:
    assert judged(ast.parse(f"def test():\n    {line}")) == []


@each(
    line=[
        "now = time.time()", "time.sleep(1)", "sleep(1)", "began = perf_counter()",
        "await asyncio.sleep(0)", "await asyncio.wait_for(x, 1)", "at = datetime.now(UTC)",
        "at = datetime.datetime.now()", "day = date.today()", "module.time.monotonic()",
        "assert gone.wait(30)", "assert process.wait(timeout=3) == 0", "assert not t.is_alive()",
        "run('import time\\ntime.sleep(3)')", "gone.wait(0.1)", "thread.join(PATIENCE_S)",
        "thread.join(self.grace_s)", "subprocess.run(words, timeout=60)", "stream.settimeout(5)",
        "said = [one.communicate(timeout=LONG)[0] for one in all]", "signal.alarm(300)",
        "client.record(wait_s=2)", "lock.acquire(True, 3)", "answers.get(timeout=given.timeout)",
        "service.stop(grace_s=5)", "from tests.simulation.services import a_home, a_process",
    ]
)  # fmt: skip
def test_what_reads_a_clock_is_found(line: str) -> None:
    assert found(ast.parse(f"async def test():\n    {line}")) == [2]


@each(
    line=[
        "clock.sleep(1)", "patch.setattr(module.time, 'monotonic', lambda: 7.0)",
        "datetime(2026, 1, 1)", "thread.join()", "process.wait()", "', '.join(names)",
        "assert ', '.join(names) == ''", "text = ', '.join(NAMES)", "stream.settimeout(0)",
        "gone.wait(timeout=None)", "lock.acquire()", "from tests.simulation.services import a_home",
        "from tests.workloads import quick",
    ]
)  # fmt: skip
def test_what_reads_none_is_not(line: str) -> None:
    assert found(ast.parse(f"async def test():\n    {line}")) == []


def test_waits_are_followed_through_helpers() -> None:
    waiting = waiting_names("tests.simulation.services")
    assert {"wait_until_serving", "a_process", "a_service"} <= waiting
    assert not {"a_home", "a_config", "controller_of"} & waiting
