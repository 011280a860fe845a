# SPDX-License-Identifier: Apache-2.0
"""Every program of `benchmarks/` can be imported and describes itself: a moved module is noticed.

One process calls all of them with `--help`, in turn, so that what they share is imported once.
"""

import ast
import importlib
from pathlib import Path

from tests.in_turn import Call, in_turn

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ELSEWHERE = {
    "accasim/run_accasim.py", "elastisim/scheduler.py", "elastic_bench/paced.py",
    "power_bench/login.py",
}  # fmt: skip
"""Run by another simulator's interpreter, or by their drivers on the nodes of a cluster."""


def sources() -> dict[str, Path]:
    found = {path.relative_to(BENCHMARKS).as_posix(): path for path in BENCHMARKS.rglob("*.py")}
    # Programs first: their parts import each other from the directory of the program.
    order = sorted(found, key=lambda name: ("/" in name, name))
    return {name: found[name] for name in order if found[name].name != "__init__.py"}


def called(programs: dict[str, Path]) -> dict[str, str]:
    """By name, why a program could not be called; empty: it could."""
    calls = [
        Call(path, ("--help",), is_imported="__main__" not in path.read_text())
        for path in programs.values()
    ]
    results = in_turn(calls, BENCHMARKS)
    return {
        name: result.failure or flaw(call, result.printed)
        for name, call, result in zip(programs, calls, results, strict=True)
    }


def flaw(call: Call, printed: str) -> str:
    """What is wrong with the help that a program prints."""
    is_help = call.is_imported or "usage" in printed.lower()
    return "" if is_help else f"does not know --help, printed {printed[:200]!r}"


def test_programs_can_be_called() -> None:
    """Slow: calls every program."""
    here = {name: path for name, path in sources().items() if name not in ELSEWHERE}
    assert {name: why for name, why in called(here).items() if why} == {}


def test_what_programs_elsewhere_import_exists() -> None:
    found = {name: missing_imports((BENCHMARKS / name).read_text()) for name in ELSEWHERE}
    assert {name: lost for name, lost in found.items() if lost} == {}


def missing_imports(text: str) -> list[str]:
    """What a program imports of this project and does not exist."""
    lost = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bridge"):
            try:
                module = importlib.import_module(str(node.module))
            except ImportError:
                lost.append(str(node.module))
                continue
            lost += [alias.name for alias in node.names if not hasattr(module, alias.name)]
    return lost


def test_what_cannot_be_called_is_noticed(tmp_path: Path) -> None:
    texts = {
        "moved.py": "import bridge.planning.a_module_that_moved",
        "silent.py": "if __name__ == '__main__':\n    print('ran')",
        "failing.py": "import sys\nif __name__ == '__main__':\n    sys.exit('usage: no')",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = called({name: tmp_path / name for name in texts})
    assert "ModuleNotFoundError" in found["moved.py"]
    assert "--help" in found["silent.py"]
    assert "exit" in found["failing.py"]
    code = "from bridge.extensions.elastic.link import Moved\nfrom bridge.no import x"
    assert missing_imports(code) == ["Moved", "bridge.no"]
