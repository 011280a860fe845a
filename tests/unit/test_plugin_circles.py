# SPDX-License-Identifier: Apache-2.0
"""No file of the plugins includes or calls, through others, itself.

A source and its header count as one file. A call is found by its name: whatever header declares the
function, the source that defines it is called.
"""

import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "bridge" / "shim"
INCLUDED = re.compile(r'^#include "([^"]+)\.h"', re.MULTILINE)
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.DOTALL)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")
FUNCTION = r"^(?!static\b|typedef\b)(?:\w[\w ]*[ *]+)(\w+)\((?:[^;{}()]|\([^()]*\))*\)"
DEFINED = re.compile(FUNCTION + r"\s*\{", re.MULTILINE)
DECLARED = re.compile(FUNCTION + r";", re.MULTILINE)
NAMED = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")  # no member of a record


def code_of(path: Path) -> str:
    """Without comments, texts, includes and attributes."""
    return ATTRIBUTE.sub("", NO_CODE.sub(" ", INCLUDED.sub("", path.read_text())))


def functions(folder: Path) -> dict[str, str]:
    """For each function that other files can call, the file that defines it."""
    return {
        name: str(path.relative_to(folder).with_suffix(""))
        for path in folder.rglob("*.c")
        for name in DEFINED.findall(code_of(path))
    }


def uses(folder: Path) -> dict[str, set[str]]:
    """For each file those that it includes or calls."""
    defined = functions(folder)
    used: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.rglob("*.[ch]")):
        name = str(path.relative_to(folder).with_suffix(""))
        included = set(INCLUDED.findall(path.read_text()))
        words = set(NAMED.findall(DECLARED.sub("", code_of(path))))
        called = {defined[word] for word in words & defined.keys()}
        used[name] |= (included | called) - {name}
    return used


def put_in_order(folder: Path) -> None:
    TopologicalSorter(uses(folder)).prepare()  # a CycleError names the circle


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        source, _, suffix = name.rpartition("_")
        (folder / f"{source}.{suffix}").write_text(text)


def test_files_of_the_plugins_do_not_use_each_other_in_a_circle():
    put_in_order(PLUGINS)


def test_all_functions_in_headers_are_found_where_they_are_defined():
    headers = [path for path in PLUGINS.rglob("*.h") if path.name != "slurm_compat.h"]
    declared = {name for path in headers for name in DECLARED.findall(code_of(path))}
    assert {"job_by_wire_id", "verdict_of", "start_job"} <= declared  # verdict_of has attributes
    assert declared <= functions(PLUGINS).keys()


def test_a_circle_of_includes_is_found(tmp_path: Path):
    write(tmp_path, a_h='#include "b.h"\n', b_h="int b(void);\n", b_c='#include "c.h"\n')
    put_in_order(tmp_path)
    write(tmp_path, c_h='#include "a.h"\n')
    with pytest.raises(CycleError, match=r"'a', 'c', 'b'|'b', 'a', 'c'|'c', 'b', 'a'"):
        put_in_order(tmp_path)


def test_a_circle_of_calls_is_found_whichever_header_declares_the_functions(tmp_path: Path):
    shared = "int first(int number);\nint second(int number);\n"
    a = '#include "shared.h"\nint first(int number)\n{\n    return second(number);\n}\n'
    b = '#include "shared.h"\nint second(int number)\n{\n    return number;\n}\n'
    write(tmp_path, shared_h=shared, a_c=a, b_c=b)
    put_in_order(tmp_path)
    write(tmp_path, b_c=b.replace("return number", "return first(number)"))
    with pytest.raises(CycleError, match=r"'a', 'b'|'b', 'a'"):
        put_in_order(tmp_path)


def test_functions_of_one_file_and_words_that_are_no_code_make_no_circle(tmp_path: Path):
    """A file may have a function of its own, a comment, a text or a member by another's name."""
    a = "int first(void)\n{\n    return second();\n}\nstatic int third(void)\n{\n    return 3;\n}\n"
    b = (
        "int second(void)\n{\n    third();\n    row->first = 1; /* first() */\n"
        '    return puts("\\"first()"); // see first()\n}\n'
        "static int third(void)\n{\n    return 4;\n}\n"
    )
    write(tmp_path, a_c=a, b_c=b)
    put_in_order(tmp_path)
    assert uses(tmp_path) == {"a": {"b"}, "b": set()}
