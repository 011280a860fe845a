# SPDX-License-Identifier: Apache-2.0
"""What Slurm 24.11.5 printed on a cluster, a log of PBS, and a double of pyslurm, as jobs."""

import json
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridge.errors import ConfigError
from bridge.lab.accounting import pyslurm_jobs, site_commands
from bridge.lab.accounting.anonymous import pseudonymous, read_or_make_secret
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.pbs_log import read_pbs_log
from bridge.lab.accounting.sacct_json import read_sacct_json
from bridge.lab.accounting.sacct_table import read_sacct_table
from bridge.lab.accounting.slurm_system import system_yaml
from bridge.lab.accounting.slurm_words import (
    dependencies,
    duration_s,
    instant_s,
    memory_mib,
    submission_of,
    tres_of,
    whole,
)
from bridge.lab.sim.workloads.records.job_record import JobEnding

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    """The cluster printed local times, and was in UTC."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def recorded(name):
    return (RECORDED / name).read_bytes()


@pytest.mark.parametrize(
    ("read", "name"),
    [(read_sacct_json, "sacct-24.11.json"), (read_sacct_table, "sacct-24.11.txt")],
)
def test_jobs_of_a_real_cluster(read, name):
    found = read(recorded(name).splitlines(), name)
    assert (found.faults, len(found.jobs)) == (0, 10)
    plain = found.jobs["1"]
    assert (plain.user, plain.name, plain.partitions) == ("user", "plainjob", ("main",))
    assert (plain.memory_mib, plain.memory_per, plain.time_limit_s) == (500, "node", 300)
    assert (plain.start_s - plain.submit_s, plain.runtime_s, plain.cpus) == (1, 3, 2)
    wide = found.jobs["3"]
    assert (wide.nodes, wide.least_nodes, wide.cpus, wide.node_list) == (2, 1, 6, "n[2-3]")
    assert (wide.memory_mib, wide.memory_per, wide.gres) == (100, "cpu", {"gpu": 2})
    task = found.jobs["2_3"]
    assert (task.array, task.array_limit, task.features) == ("2", 2, "fast")
    after = found.jobs["5"]
    assert (after.after, after.exclusive, after.cpus) == ((("afterok", "4"),), True, 4)
    assert after.requested_cpus == 1
    assert (found.jobs["9"].state, found.jobs["9"].end_s) == (JobEnding.RUNNING, 0)
    never = found.jobs["10"]
    assert (never.state, never.start_s, never.runtime_s, never.cpus) == (JobEnding.FAILED, 0, 0, 99)


def test_json_and_table_agree():
    a = read_sacct_json([recorded("sacct-24.11.json")], "a").jobs
    b = read_sacct_table(recorded("sacct-24.11.txt").split(b"\n"), "b").jobs
    # The table has sums of memory, and the running job was a second older.
    differ = {"memory_mib", "memory_per", "runtime_s"}
    for key in a:
        one, other = a[key].plain(), b[key].plain()
        assert {k: v for k, v in one.items() if k not in differ} == {
            k: v for k, v in other.items() if k not in differ
        }


def test_bad_entries_are_counted_and_named():
    data = json.loads(recorded("sacct-24.11.json"))
    data["jobs"][0]["time"]["submission"] = None
    data["jobs"][1] = "nonsense"
    del data["jobs"][2]["time"]
    data["jobs"][3]["job_id"] = -7
    data["jobs"][4]["name"] = "x" * 10_000
    data["jobs"][5]["time"]["elapsed"] = 1e300
    data["jobs"][6]["user"] = {"a": [1]}
    found = read_sacct_json([json.dumps(data).encode()], "f")
    assert (len(found.jobs), found.faults) == (4, 6)
    assert found.messages[0] == "f: job 1: has no time of submission"
    text = recorded("sacct-24.11.txt").decode().splitlines()
    text[1] = text[1].replace("2026-11-26T17:28:19", "yesterday")
    text[2] = "1|2|3"
    text[3] = text[3].replace("2_1", "two")
    text[4] += " | tee log"  # the line of submission
    text.insert(5, text[5].replace("2_3", "2_3.batch"))
    found = read_sacct_table("\r\n".join(text).encode().split(b"\n"), "t")
    assert (len(found.jobs), found.faults) == (7, 3)
    assert found.messages[0].startswith("t:2: 'yesterday' is not a time")
    for junk in (b"", b"[]", b'{"jobs": 3}', b'{"jobs": [', b"[" * 100_000):
        with pytest.raises(ValueError, match=r"JSON|no list"):
            read_sacct_json([junk], "f")


def test_words():
    assert duration_s("1-02:03:04") == 93_784
    assert (duration_s("05:00"), duration_s("UNLIMITED"), duration_s("1-12")) == (300, 0, 129_600)
    assert instant_s("Unknown") == 0
    assert (memory_mib("4G"), memory_mib("1.5G"), memory_mib("500")) == (4096, 1536, 500)
    tres = tres_of("cpu=4,mem=8G,node=2,billing=4,gres/gpu=2,gres/gpu:a100=2")
    assert (tres.cpus, tres.nodes, tres.memory_mib, tres.gres) == (4, 2, 8192, {"gpu:a100": 2})
    assert whole({"set": False, "infinite": False, "number": 3}) == 0
    assert dependencies("afterok:4:5_2+10,singleton?afterany:7") == [
        ("afterok", "4"), ("afterok", "5_2"), ("singleton", ""), ("afterany", "7"),
    ]  # fmt: skip
    line = submission_of("sbatch -d afterok:4 --gres gpu:a100:2,shard --array=1-9%3 --exclusive j")
    assert (line.after, line.exclusive, line.array_limit) == ((("afterok", "4"),), True, 3)
    assert line.gres_per_node == {"gpu:a100": 2, "shard": 1}
    assert submission_of("sbatch 'unclosed --exclusive").exclusive
    for read, text in (
        (duration_s, "1:2:3:4:5"), (instant_s, "2026-13-01"), (memory_mib, "many"),
        (tres_of, "cpu"), (memory_mib, "9" * 400), (instant_s, "9" * 30), (whole, "x"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"not|possible"):
            read(text)


def test_system_of_json_and_of_text():
    found = AccountingRecords("")
    by_json, by_text = (
        system_yaml(
            recorded(f"nodes-24.11.{form}"), recorded(f"partitions-24.11.{form}"), "c", found
        )
        for form in ("json", "txt")
    )
    assert found.faults == 0
    assert by_json == by_text
    assert "names: n[1-2]" in by_json
    assert "gres: {gpu: 2}" in by_json
    assert "{name: left, nodes: 'n[1-3]'}" in by_json
    typed = b"NodeName=a CPUTot=8 RealMemory=100 Gres=gpu:a100:4(S:0-1),gpu:v100:2 Weight=5\n"
    text = system_yaml(
        typed, b"PartitionName=p Nodes=a,b MaxTime=1-00:00:00 MaxNodes=2\n", "c", found
    )
    assert "gpu: 6" in text
    assert "features: [a100, v100]" in text
    assert "max_time_s: 86400, max_nodes: 2" in text
    with pytest.raises(ValueError, match="no node"):
        system_yaml(b"", b"", "c", found)


PBS = """\
11/26/2026 10:00:00;Q;7.srv;user=ann group=phys account="a b" queue=work ctime=1795680000 qtime=1795680000 Resource_List.ncpus=8
11/26/2026 10:00:00;Q;8.srv;user=bob queue=work qtime=1795680000
11/26/2026 10:00:00;Q;9[3].srv;queue=work qtime=1795680001
11/26/2026 10:01:00;S;7.srv;user=ann jobname=sim queue=work qtime=1795680000 start=1795680060 exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 Resource_List.mem=16gb Resource_List.ngpus=2 Resource_List.walltime=01:00:00 Resource_List.place=scatter:excl Resource_List.select=2:ncpus=4:mem=8gb:ngpus=1 depend=afterok:5.srv@srv
11/26/2026 10:31:00;E;7.srv;user=ann jobname=sim queue=work qtime=1795680000 start=1795680060 end=1795681860 exec_host=n1/0*4+n2/0*4 Exit_status=-29 resources_used.walltime=00:29:58 Resource_List.ncpus=8 Resource_List.mem=16gb Resource_List.walltime=01:00:00
11/26/2026 10:40:00;D;8.srv;requestor=bob@srv
nonsense
11/26/2026 10:41:00;E;10.srv;qtime=1795680000 end=x Resource_List.walltime=long
11/26/2026 10:42:00;B;R1.srv;owner=root name=maint start=1795690000 end=1795693600 nodes=(n1:ncpus=4)+(n2:ncpus=4)
11/26/2026 10:43:00;L;license;floating
"""  # noqa: E501


def test_a_log_of_pbs():
    found = read_pbs_log(PBS.encode().splitlines(), "20261126")
    assert (found.faults, set(found.jobs)) == (2, {"7", "8", "9_3"})
    assert found.messages[0] == "20261126:7: is not a line of an accounting log"
    job = found.jobs["7"]
    assert (job.user, job.account, job.name) == ("ann", "a b", "sim")
    assert (job.nodes, job.node_list, job.cpus, job.gres) == (2, "n1,n2", 8, {"gpu": 2})
    assert (job.memory_mib, job.memory_per, job.exclusive) == (8192, "node", True)
    assert (job.start_s, job.runtime_s, job.time_limit_s) == (1795680060, 1798, 3600)
    assert (job.state, job.after[0]) == (JobEnding.TIMEOUT, ("afterok", "5"))
    assert job.shape.startswith("2:ncpus=4")
    assert found.jobs["8"].state is JobEnding.CANCELLED
    assert (found.jobs["9_3"].state, found.jobs["9_3"].array) == (JobEnding.PENDING, "9")
    assert found.reservations[0].nodes == "n1,n2"


def a_pyslurm(version, jobs):
    """A double with the parts of pyslurm's API that are used."""
    database = SimpleNamespace(
        JobFilter=lambda **period: period,
        Jobs=SimpleNamespace(load=lambda _: {job.id: job for job in jobs}),
    )
    return SimpleNamespace(__version__=version, db=database)


def a_dbd_job(**fields):
    usual = dict.fromkeys(
        ("account", "array_id", "array_task_id", "array_tasks_parallel", "heterogeneous_id",
         "heterogeneous_offset", "constraints", "nodelist", "partition", "qos", "reservation",
         "submit_command")
    )  # fmt: skip
    usual |= {
        "id": 4, "submit_time": 100, "eligible_time": 100, "start_time": 110, "end_time": 150,
        "elapsed_time": 40, "time_limit": 5, "state": "COMPLETED", "user_name": "ann",
        "name": "x", "num_nodes": 2, "cpus": 4, "memory": 800, "requeue_count": 1, "priority": 9,
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **fields})


def test_pyslurm_that_fits_is_used(monkeypatch):
    jobs = [
        a_dbd_job(submit_command="sbatch --mem-per-cpu=200 --gres=gpu:1", constraints=["a", "b"]),
        a_dbd_job(id=6, array_id=5, array_task_id=0, time_limit="UNLIMITED", end_time=None),
        a_dbd_job(id=7, submit_time=None),
    ]
    monkeypatch.setitem(sys.modules, "pyslurm", a_pyslurm("24.11.3", jobs))
    assert pyslurm_jobs.unfit("24.11.5") is None
    found = pyslurm_jobs.read_by_pyslurm(0, 10)
    assert found.reader == "slurmdbd by pyslurm 24.11.3"
    assert (set(found.jobs), found.faults) == ({"4", "5_0"}, 1)
    job = found.jobs["4"]
    assert (job.memory_mib, job.memory_per, job.gres) == (200, "cpu", {"gpu": 2})
    assert (job.features, job.time_limit_s, job.runtime_s, job.restarts) == ("a&b", 300, 40, 1)


def test_pyslurm_of_another_version_gives_way_to_sacct(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyslurm", a_pyslurm("25.11.2", []))
    assert pyslurm_jobs.unfit("24.11.5") == "pyslurm 25.11.2 is not for Slurm 24.11.5"
    said = {
        "sacct --version": b"slurm-wlm 24.11.5\n",
        "sacct --json": recorded("sacct-24.11.json"),
        "sacctmgr show event": recorded("events-24.11.txt"),
        "sacctmgr show reservation": None,
        "scontrol show nodes": recorded("nodes-24.11.txt"),
        "scontrol show partitions": recorded("partitions-24.11.txt"),
        "scontrol show config": b"ClusterName             = test\n",
    }

    def run(*command):
        (answer,) = [text for key, text in said.items() if " ".join(command).startswith(key)]
        if answer is None:
            raise ConfigError("sacctmgr", "failed: not allowed")
        return answer

    monkeypatch.setattr(site_commands, "_run", run)
    requested = site_commands.ask_slurm(1795700000, 1795700000 + 20 * 86_400)
    assert (requested.found.reader, requested.cluster, requested.version) == (
        "sacct --json",
        "test",
        "24.11.5",
    )
    assert (len(requested.found.jobs), requested.found.repeated) == (10, 0)
    assert "pyslurm 25.11.2 is not for Slurm 24.11.5" in requested.notes
    assert "no reservations: sacctmgr: failed: not allowed" in requested.notes
    (outage, *_) = requested.found.outages
    assert (outage.nodes, outage.state, outage.end_s - outage.start_s) == ("n3", "drained", 14)
    said["sacct --version"] = b"slurm 22.05.3\n"
    said["sacct --helpformat"] = b"JobID Submit State\nUser"
    said["sacct --parsable2"] = b"JobID|User|State|Submit\n3|ann|COMPLETED|2026-11-26T10:00:00\n"
    requested = site_commands.ask_slurm(1795700000, 1795700001)
    assert (requested.found.reader, list(requested.found.jobs)) == ("sacct --parsable2", ["3"])
    with pytest.raises(ConfigError, match=r"25\.11\.2 is not for Slurm 22\.05\.3; use --reader"):
        site_commands.ask_slurm(0, 1, "pyslurm")


def test_a_missing_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="sacct: is not there: import on a machine with Slurm"):
        site_commands.ask_slurm(0, 1)


def test_pseudonyms_need_the_secret(tmp_path):
    found = read_sacct_json([recorded("sacct-24.11.json")], "f")
    kept = tmp_path / "secret"
    first = pseudonymous(found, read_or_make_secret(kept))
    assert kept.stat().st_mode & 0o77 == 0
    again = pseudonymous(found, read_or_make_secret(kept))
    other = pseudonymous(found, read_or_make_secret(None))
    assert first.jobs == again.jobs
    assert first.jobs["1"].user != other.jobs["1"].user
    assert first.jobs["1"].user == first.jobs["2_1"].user != first.jobs["3"].user
    shown = json.dumps([job.plain() for job in first.jobs.values()])
    assert not any(f'"{name}"' in shown for name in ("alice", "everyone", "plainjob"))
    kept.write_text("short")
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        read_or_make_secret(kept)


def test_the_times_of_the_recordings():
    assert instant_s("2026-11-26T17:28:19") == int(
        datetime.fromisoformat("2026-11-26T17:28:19+00:00").timestamp()
    )
