# SPDX-License-Identifier: Apache-2.0
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli.main import commands, module_of, usage
from bridge.cli.operators.asking import print_json, shown, until, when
from bridge.rpc.pb import operator_pb2 as pb

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", commands())
def test_every_command_is_there_and_has_help(name, schedbridge):
    _, attribute, _ = commands()[name]
    assert hasattr(importlib.import_module(module_of(name)), attribute)
    code, out, _ = schedbridge(*name.split(), "--help")
    assert code == 0
    assert f"schedbridge {name}" in out


def test_help_names_every_command_and_imports_little(schedbridge):
    code, out, _ = schedbridge("--help")
    assert code == 0
    assert out == usage()
    _, of_lab, _ = schedbridge("lab", "--help")
    for name in commands():
        assert f"\n  {name.removeprefix('lab ')} " in (of_lab if " " in name else out)
    assert "\n  lab " in out
    script = (
        "import sys\nfrom bridge.cli.main import usage\nusage()\n"
        "heavy = {'numpy', 'grpc', 'typer', 'pydantic', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", ["explain", "plan", "status"])
def test_commands_that_ask_the_service_import_neither_its_configuration_nor_numpy(name):
    script = (
        f"import sys\nimport bridge.cli.operators.{name}\n"
        "slow = {'numpy', 'bridge.service.config', 'bridge.dialect'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_no_command_is_wrong_usage(schedbridge):
    assert schedbridge()[0] == 2
    code, out, _ = schedbridge("lab")
    assert code == 2
    assert out.startswith("Usage: schedbridge lab COMMAND")


@pytest.mark.parametrize("name", ["simulate", "experiment-report"])
def test_a_command_of_the_laboratory_alone_is_told_where_it_is(name, schedbridge):
    code, out, err = schedbridge(name, "x")
    assert (code, out) == (2, "")
    assert err == (
        f"schedbridge: '{name}' is a command of the laboratory: schedbridge lab {name}\n"
    )


def test_an_unknown_command_is_one_line(schedbridge):
    code, out, err = schedbridge("fly")
    assert (code, out) == (2, "")
    assert err.startswith("schedbridge: no command 'fly'; there are serve, ")
    assert len(err.splitlines()) == 1
    code, out, err = schedbridge("lab", "fly")
    assert (code, out) == (2, "")
    assert err.startswith("schedbridge: no command 'lab fly'; there are simulate, ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("plan",),
        ("explain", "1"),
        ("accuracy",),
        ("policy", "show"),
        ("policy", "set", "easy"),
    ],
)
def test_without_a_service_there_is_one_clear_line(schedbridge, tmp_path, arguments):
    code, out, err = schedbridge(*arguments, "--socket", tmp_path / "none")
    assert (code, out) == (1, "")
    assert err == (
        f"schedbridge: no service at {tmp_path}/none: start it with 'schedbridge serve', "
        "or give --socket PATH\n"
    )


def test_the_socket_is_found_in_the_configuration(schedbridge, tmp_path):
    (tmp_path / "b.yaml").write_text(f"operator: {{socket: {tmp_path}/here}}")
    _, _, err = schedbridge("status", "--config", tmp_path / "b.yaml")
    assert f"no service at {tmp_path}/here" in err


def test_the_socket_is_found_in_the_environment(schedbridge, tmp_path, monkeypatch):
    monkeypatch.setenv("SCHEDBRIDGE_SOCKET", f"{tmp_path}/there")
    assert f"no service at {tmp_path}/there" in schedbridge("status")[2]


def test_a_socket_nobody_listens_at(schedbridge, tmp_path):
    (tmp_path / "s").write_text("")
    code, _, err = schedbridge("status", "--socket", tmp_path / "s")
    assert code == 1
    assert "no answer at unix:" in err
    assert len(err.splitlines()) == 1


# ------------------------------------------------------------------ check-config


def test_check_config_prints_what_it_comes_to(schedbridge, tmp_path):
    (tmp_path / "b.yaml").write_text("policy: easy")
    code, out, _ = schedbridge("check-config", tmp_path / "b.yaml")
    assert code == 0
    assert "retry_s: 30" in out
    assert schedbridge("check-config", tmp_path / "b.yaml", "--quiet")[1] == ""
    found = json.loads(schedbridge("check-config", tmp_path / "b.yaml", "--json")[1])
    assert found["ok"]
    assert found["config"]["policy"]["plan"] == "easy"


def test_check_config_names_every_problem(schedbridge, tmp_path):
    file = tmp_path / "b.yaml"
    file.write_text("policy: magic\nlog: {level: loud}")
    code, out, err = schedbridge("check-config", file)
    assert (code, out) == (1, "")
    lines = sorted(err.splitlines())
    assert len(lines) == 2
    assert lines[0].startswith(f"schedbridge: {file}: log.level: ")
    assert lines[1].startswith(f"schedbridge: {file}: policy: no preset 'magic'")
    code, out, err = schedbridge("check-config", file, "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert not found["ok"]
    assert {problem["key"] for problem in found["problems"]} == {"policy", "log.level"}


def test_check_config_warns_of_a_topology_that_is_not_here(schedbridge, tmp_path):
    file, switches = tmp_path / "b.yaml", tmp_path / "topology.conf"
    file.write_text(f"topology: {switches}")
    code, out, err = schedbridge("check-config", file, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    assert err.startswith(f"warning: {switches}: ")
    switches.write_text("SwitchName=a Nodes=n1")
    assert schedbridge("check-config", file, "--quiet") == (0, "", "")


def test_check_config_of_no_file(schedbridge, tmp_path):
    code, _, err = schedbridge("check-config", tmp_path / "none")
    assert code == 1
    assert "No such file or directory" in err


# ------------------------------------------------------------------ printing


def test_numbers_are_numbers_in_json(capsys):
    reply = pb.StatusReply(generation=2**60, decisions={"start": 2**40}, jobs_pending=3)
    reply.controller_status.fallbacks = 1
    print_json(reply)
    found = json.loads(capsys.readouterr().out)
    assert found["generation"] == 2**60
    assert found["decisions"] == {"start": 2**40}
    assert found["refusals"] == {}
    assert found["controller_status"]["fallbacks"] == 1
    print_json(pb.PlanReply(now_s=5, jobs=[pb.PlannedJob(job_id="1", start_s=7)]))
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"][0]["start_s"] == 7


def test_words_of_users_cannot_drive_the_terminal():
    assert shown("a\x1b[2Jb") == "a?[2Jb"
    assert shown("näh") == "näh"


def test_instants():
    assert when(0) == ""
    assert until(5, 5) == "now"
    assert until(65, 5) == "in 1 min"


def test_the_version_is_one_line(schedbridge):
    code, out, _ = schedbridge("--version")
    assert code == 0
    assert out.startswith("schedbridge ")
