# SPDX-License-Identifier: Apache-2.0
"""What a job passes for which no extension does anything: an option that is off costs nothing."""

import sys

from bridge.policies.catalogue import DEFAULT
from bridge.registry import PRESETS, build
from bridge.rpc.controller.actions import decided
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc import worlds

MAX_FILES, MAX_FUNCTIONS = 59, 291
"""Upper bounds; to be lowered with every extension that leaves the core. The aim: 45 and 200."""


def a_service():
    """Cycles of a controller that can do everything, under the default preset."""
    hello = worlds.a_hello(features=decided())
    return worlds.some_cycles(Decider(build(PRESETS[DEFAULT])).decide, DEFAULT, hello=hello)


def passed(report, cycles=None):
    """File and name of each function of a service that a report passes until it is answered.

    What a process does once (reading tables, finding packages) has been done by another service.
    """
    a_service().run(report)
    cycles, found = cycles or a_service(), set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and "/bridge/" in code.co_filename:
            found.add((code.co_filename.rpartition("/bridge/")[2], code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        reply = cycles.run(report)
    finally:
        sys.setprofile(before)
    return found, reply


def test_three_plain_jobs_pass_few_files_and_functions():
    found, reply = passed(worlds.a_full([worlds.a_job(str(number)) for number in (1, 2, 3)]))
    assert len(reply.decisions) == 3
    files = {file for file, _ in found}
    assert len(files) <= MAX_FILES, sorted(files)
    assert len(found) <= MAX_FUNCTIONS, sorted(found)


def test_no_code_of_an_extension_runs_for_them():
    found, _ = passed(worlds.a_full([worlds.a_job("1"), worlds.a_job("2")]))
    assert {file for file, _ in found if file.startswith("extensions/")} == set()


def test_the_code_of_an_extension_runs_if_the_report_has_something_for_it():
    off = worlds.a_node("n0", off=True, state="UP+POWERED_DOWN", power_saving=True, resume_s=60)
    nodes = [off, *(worlds.a_node(f"n{number}") for number in (1, 2, 3))]
    found, _ = passed(worlds.a_full([worlds.a_job("1"), worlds.a_job("2")], nodes=nodes))
    ran = {file for file, _ in found}
    assert {f"extensions/power/{name}.py" for name in ("closing", "awake", "saving")} <= ran


def test_the_code_of_resizes_runs_from_the_first_malleable_job_until_it_is_forgotten():
    a_width = pb.Request(partitions=["batch"], malleable=pb.Malleable(min_nodes=1, max_nodes=3))
    plain, other, wide = (worlds.a_running_job(job, f"n{at}") for at, job in enumerate("abm"))
    wide.request.CopyFrom(a_width)
    reports = [plain, other], [plain, wide], [plain, other], [plain, other], [plain]
    cycles, ran = a_service(), []
    for at, running in enumerate(reports, 1):
        report = worlds.a_full([*running, worlds.a_job("9")], generation=at)
        found, _ = passed(report, cycles)
        ran.append({name for file, name in found if "resizing/" in file})
    assert not ran[0]
    assert "Runtime.see" in ran[1]
    assert "Runtime.see" in ran[2]
    assert ran[3] == {"Runtime.is_idle"}
    assert not ran[4]
