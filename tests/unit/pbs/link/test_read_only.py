# SPDX-License-Identifier: Apache-2.0
"""The link without libpbs.so.0: what the commands of a real server printed, with odd values."""

import logging
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.pbs.ifl.commands import PrintedTables, find_commands, run_command
from bridge.pbs.ifl.port import IflError
from bridge.pbs.ifl.qstat_json import NotJson, read_output
from bridge.pbs.link.assembly import PbsModel
from bridge.pbs.link.read_only import ReadOnlyLink, read_only_link
from bridge.pbs.link.stream import Stream
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.pbs.link.world import Service

RECORDED = Path(__file__).parent / "recorded"
FILES = {
    "qstat -f -t -F json": "qstat-f-t.txt", "pbsnodes -a -v -F json": "pbsnodes.txt",
    "qstat -Qf -F json": "qstat-Qf.txt", "qstat -Bf -F json": "qstat-Bf.txt",
    "pbs_rstat -f": "pbs_rstat.txt", "qmgr -c print resource": "qmgr-resource.txt",
    "qmgr -c list sched": "qmgr-sched.txt",
}  # fmt: skip
NOW_S = 1_795_713_400


class Commands:
    """Prints what a real server printed; `said` replaces the output of a command."""

    def __init__(self):
        self.said = {}

    def __call__(self, words):
        command = " ".join(words)
        said = self.said.get(command, (RECORDED / FILES[command]).read_bytes())
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture
def commands():
    return Commands()


@pytest.fixture
def printed(commands):
    return PrintedTables(None, run=commands)


def a_link(printed, service):
    model = PbsModel()
    stream = Stream("unix:/none", model.hello(), stub=service)
    return ReadOnlyLink(printed, stream, model, wall=lambda: NOW_S)


def test_what_the_commands_print_becomes_the_tables(printed):
    tables = printed.read(NOW_S)
    assert tables.server_name == "pbssrv"
    assert tables.server["resources_available"] == {"lic": "4"}
    assert tables.vnodes["n1"]["resources_available"]["color"] == "red"
    assert tables.queues["workq"]["started"] == "True"
    assert tables.resources["scratch"] == {"type": "size", "flag": "hn"}
    assert tables.sched["sched_priv"] == "/var/spool/pbs/sched_priv"
    job = tables.jobs["0.pbssrv"]
    assert job["exec_vnode"] == "(n1:ncpus=2:mem=10240kb)+(n2:ncpus=1)"
    assert (job["ctime"], job["stime"]) == ("1795713390", "1795713395")
    reservation = tables.reservations["R17.pbssrv"]
    assert reservation["reserve_start"] == "1795713993"
    assert reservation["Resource_List"]["select"] == "1:ncpus=1"
    assert "16[].pbssrv" in tables.jobs
    assert "16[1].pbssrv" not in tables.jobs  # a task that has not started


def test_odd_values_are_named_and_read_as_texts(printed):
    jobs = printed.read(NOW_S).jobs
    names = {at: jobs[f"{at}.pbssrv"]["Job_Name"] for at in (1, 2, 4, 7, 8)}
    assert names == {1: "007", 2: "1e5", 4: "nan", 7: "1.", 8: "+3"}
    told = "\n".join(printed.problems)
    for job, value in ((1, "comment"), (4, "nan"), (7, "1."), (8, "+3")):
        assert any(f"{job}.pbssrv" in line and value in line for line in printed.problems), told
    assert len(printed.problems) == 4


def test_an_object_that_cannot_be_repaired_is_left_out_and_named():
    whole = b'{\n    "Jobs":{\n        "1.s":{\n            "a":"b"\n        },\n'
    broken = b'        "2.s":{\n            "a":\n            {{\n        }\n    }\n}\n'
    found = read_output(whole + broken, "Jobs")
    assert found.objects == {"1.s": {"a": "b"}}
    assert found.problems[-1] == "2.s: is left out: it is printed as invalid JSON"


@pytest.mark.parametrize("output", [b"", b"{", b"qstat: cannot connect", b"[]", b'{"Jobs": 3}'])
def test_an_output_that_ends_early_or_is_something_else_is_refused(output):
    with pytest.raises(NotJson):
        read_output(output, "Jobs")
    cut = (RECORDED / "qstat-f-t.txt").read_bytes()[:-5]
    with pytest.raises(NotJson):
        read_output(cut, "Jobs")


def test_the_queue_is_planned_and_nothing_is_started(printed, caplog):
    service = Service()
    link = a_link(printed, service)
    for _ in range(3):
        link.turn()
    assert service.cycles.published is not None
    snapshot = service.cycles.published.snapshot
    assert "0.pbssrv" in list(snapshot.running.id)
    assert {"2.pbssrv", "16[].pbssrv"} <= set(snapshot.jobs.id)
    assert sum("is printed as invalid JSON" in line for line in caplog.messages) == 4


def test_a_job_that_has_left_is_reported_as_ended(printed, commands):
    class Listening(Service):
        ended = ()

        def Cycle(self, request, timeout):  # noqa: N802 - as generated
            self.ended = [run.id for run in request.ended] or self.ended
            return super().Cycle(request, timeout)

    service = Listening()
    link = a_link(printed, service)
    link.turn()
    commands.said["qstat -f -t -F json"] = b'{\n    "timestamp":1\n}\n'
    link.turn()
    assert service.ended == ["0.pbssrv"]


@pytest.mark.parametrize(
    ("command", "said"),
    [("qstat -f -t -F json", OSError("no such file")), ("qstat -Bf -F json", b"{\n}\n"),
     ("pbsnodes -a -v -F json", subprocess.TimeoutExpired("pbsnodes", 60))],
)  # fmt: skip
def test_a_server_that_does_not_answer_is_said_once_and_asked_again(
    printed, commands, caplog, command, said
):
    link = a_link(printed, Service())
    commands.said[command] = said
    caplog.set_level(logging.INFO)
    link.turn()
    link.turn()
    assert sum(command.partition(" -F")[0] in line for line in caplog.messages) == 1
    commands.said.clear()
    link.turn()
    assert "server and service answer again" in caplog.messages


def test_without_qmgr_the_rest_is_read_and_that_is_said(printed, commands):
    commands.said["qmgr -c print resource"] = OSError("no such file")
    assert printed.read(NOW_S).resources == {}
    assert any("planned without what it lists" in line for line in printed.problems)


def test_the_commands_are_found_or_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no qstat in"):
        find_commands(str(tmp_path))
    (tmp_path / "bin").mkdir()
    for name in ("qstat", "pbsnodes"):
        path = tmp_path / "bin" / name
        path.write_text('#!/bin/sh\necho "$TZ $LC_ALL $*"; [ $1 != fail ] || exit 3\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    assert find_commands(str(tmp_path)) == tmp_path / "bin"
    assert run_command([str(tmp_path / "bin/qstat"), "-f"]) == b"UTC C -f\n"
    with pytest.raises(subprocess.SubprocessError, match="exit code 3"):
        run_command([str(tmp_path / "bin/qstat"), "fail"])
    link = read_only_link("unix:/none", str(tmp_path), "", "default", 1.0)
    with pytest.raises(IflError, match="qstat -Bf"):
        link.source.read(NOW_S)


def test_it_ends_when_it_is_told_to(printed, caplog):
    ending = threading.Event()
    link = a_link(printed, Service())
    link.turn = ending.set
    link.run(ending)
    assert "read-only: no job is started" in caplog.text


def test_the_wire_is_asked_for_nothing_else_than_cycles(printed):
    requested = []

    class Stub:
        def Hello(self, request, timeout):  # noqa: N802
            requested.append("hello")
            return pb.HelloReply(wire_version=1, service_epoch=7)

        def Cycle(self, request, timeout):  # noqa: N802
            requested.append(bool(request.base_generation))
            return pb.CycleReply(service_epoch=7, generation=request.generation)

    link = a_link(printed, Stub())
    link.turn()
    link.turn()
    assert requested == ["hello", False, False]  # full reports: rule 2
