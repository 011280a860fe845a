# SPDX-License-Identifier: Apache-2.0
"""Deadlines, fixed starts and operators' reservations on a real cluster, under OpenCCS.

Each shows in `squeue --start` and `schedbridge explain`, and then happens. 8 nodes of 4 CPUs.
"""

import re
import time
from collections.abc import Iterator

import pytest

from tests.integration.slurm import Cluster, announced_s, expand, instant_s

WHOLE = ("-N8", "--exclusive")


@pytest.fixture
def early(cluster: Cluster) -> Iterator[Cluster]:
    with cluster.openccs():
        yield cluster


@pytest.fixture
def late(cluster: Cluster) -> Iterator[Cluster]:
    with cluster.openccs(deadline="late"):
        yield cluster


def slurm_time(at_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))


def told(cluster: Cluster, job: str, words: str) -> str:
    """What explain says, once it says these words."""

    def says() -> str:
        done = cluster.process("schedbridge", "explain", job)
        return done.stdout if words in done.stdout else ""

    return cluster.wait_for(f"explain {job} to say '{words}'", says, 30)


def blocked(cluster: Cluster, minutes: int) -> int:
    """Fills the cluster; returns when it is free again."""
    job = cluster.sbatch(*WHOLE, f"-t{minutes}", run="sleep 3600")
    cluster.wait_state(job, "RUNNING")
    return instant_s(cluster.job(job)["EndTime"])


class TestDeadline:
    def test_early_is_planned_as_early_as_possible(self, early: Cluster) -> None:
        free_s = blocked(early, 2)
        job = early.sbatch(*WHOLE, "-t2", f"--deadline={slurm_time(free_s + 900)}")
        assert announced_s(early, job) == free_s
        told(early, job, "planned as early as possible, to end before its deadline")

    def test_late_leaves_the_time_before_to_others(self, late: Cluster) -> None:
        free_s = blocked(late, 1)
        deadline_s = free_s + 600
        due = late.sbatch(*WHOLE, "-t2", f"--deadline={slurm_time(deadline_s)}")
        assert announced_s(late, due) == deadline_s - 120 - 60
        other = late.sbatch(*WHOLE, "-t2")
        assert announced_s(late, other) == free_s
        assert announced_s(late, due) == deadline_s - 120 - 60
        told(late, due, f"planned as late as its deadline {slurm_time(deadline_s)} allows")

    def test_one_that_cannot_be_met_is_told_when_it_would_end(self, early: Cluster) -> None:
        free_s = blocked(early, 30)
        deadline_s = free_s - 600
        job = early.sbatch(*WHOLE, "-t2", f"--deadline={slurm_time(deadline_s)}")
        told(
            early,
            job,
            f"cannot end before its deadline {slurm_time(deadline_s)}; earliest end would be "
            f"{slurm_time(free_s + 120)}",
        )
        assert early.state(job) == "PENDING"
        early.wait_for(
            "squeue to say so",
            lambda: "cannot end before" in early.run("squeue", "-h", "-j", job, "-o", "%R"),
            30,
        )

    def test_a_job_without_a_limit_is_cut_to_its_deadline(self, early: Cluster) -> None:
        deadline_s = int(time.time()) + 200
        job = early.sbatch("-N1", f"--deadline={slurm_time(deadline_s)}", run="sleep 60")
        early.wait_state(job, "RUNNING")
        assert instant_s(early.job(job)["EndTime"]) <= deadline_s


class TestFixedStart:
    def test_it_starts_at_that_second_and_others_make_room(self, early: Cluster) -> None:
        at_s = int(time.time()) + 40
        fixed = early.sbatch(*WHOLE, "-t1", f"--fixed-start={slurm_time(at_s)}", run="sleep 5")
        assert announced_s(early, fixed) == at_s
        other = early.sbatch(*WHOLE, "-t10")
        assert announced_s(early, other) >= at_s + 60
        assert slurm_time(at_s)[11:] in told(early, fixed, "begin time")
        early.wait_state(fixed, "RUNNING", 60)
        assert 0 <= instant_s(early.job(fixed)["StartTime"]) - at_s <= 3

    def test_one_that_cannot_is_told_why(self, early: Cluster) -> None:
        blocked(early, 10)
        at_s = int(time.time()) + 300
        fixed = early.sbatch("-N1", "-t1", f"--fixed-start={slurm_time(at_s)}")
        told(early, fixed, f"cannot start at {slurm_time(at_s)} as fixed")

        def shown(what: str) -> str:
            return early.run("squeue", "--start", "-h", "-j", fixed, "-o", what)

        # Its begin time would be a promise that nobody keeps.
        early.wait_for("squeue to show no start", lambda: shown("%S") == "None", 30)
        early.wait_for("and why", lambda: "cannot start at" in shown("%R"), 30)
        early.run("scontrol", "update", f"JobId={fixed}", f"StartTime={slurm_time(at_s + 900)}")
        early.wait_for("its new start", lambda: announced_s(early, fixed) == at_s + 900, 30)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--fixed-start=whenever"], "give a time as --begin takes it"),
            (["--fixed-start=now+60", "--begin=now+90"], "leave out --begin"),
            (["--begin=now+90", "--fixed-start=now+60"], "leave out --begin"),
        ],
    )
    def test_what_makes_no_sense(self, early: Cluster, options: list[str], problem: str) -> None:
        done = early.process("sbatch", "-N1", "-t1", *options, "--wrap", "true")
        assert done.returncode != 0
        assert problem in done.stderr

    def test_it_is_in_the_help(self, early: Cluster) -> None:
        assert "--fixed-start" in early.run("sbatch", "--help")


class TestReservation:
    @pytest.fixture
    def name(self, cluster: Cluster) -> Iterator[str]:
        yield "exam"
        cluster.root("sh", "-c", "squeue -h -R exam -o %A | xargs -r scancel --quiet")
        cluster.process("scontrol", "delete", "ReservationName=exam", user="root")

    def reserve(self, cluster: Cluster, name: str, at_s: int, *options: str) -> str:
        return cluster.root(
            "schedbridge", "reserve", name, "--start", slurm_time(at_s), "--users", "user", *options
        )

    def test_it_is_made_and_jobs_are_planned_in_it_and_around_it(
        self, early: Cluster, name: str
    ) -> None:
        at_s = int(time.time()) + 300
        out = self.reserve(early, name, at_s, "--duration", "10m", "--nodes", "4")
        assert "Reservation exam is made" in out
        shown = early.run("scontrol", "show", "reservation", "-o", name)
        nodes = set(expand(re.search(r" Nodes=(\S+)", shown)[1]))  # type: ignore[index]
        assert len(nodes) == 4
        assert instant_s(re.search(r"StartTime=(\S+)", shown)[1]) == at_s  # type: ignore[index]
        inside = early.sbatch("-N4", "--exclusive", "-t2", "--reservation=exam")
        around = early.sbatch(*WHOLE, "-t10")
        assert announced_s(early, inside) == at_s
        assert announced_s(early, around) == at_s + 600
        told(early, around, "reservation")
        told(early, inside, "exam")
        early.run("scancel", inside)
        early.root("schedbridge", "unreserve", name)
        assert early.process("scontrol", "show", "reservation", name).returncode != 0
        early.wait_state(around, "RUNNING", "COMPLETED")

    def test_planned_jobs_are_moved_only_if_asked(self, early: Cluster, name: str) -> None:
        free_s = blocked(early, 2)
        job = early.sbatch(*WHOLE, "-t5")
        assert announced_s(early, job) == free_s
        done = early.process(
            "schedbridge", "reserve", name, "--start", slurm_time(free_s + 60), "--duration", "5m",
            "--chunks", "2:ncpus=4", "--users", "user", user="root",
        )  # fmt: skip
        assert done.returncode == 1
        assert job in done.stdout
        assert "there is from" in done.stderr
        out = self.reserve(
            early, name, free_s + 60, "--duration", "5m", "--chunks", "2:ncpus=4", "--displace"
        )
        assert job in out
        early.wait_for("the job to move", lambda: announced_s(early, job) == free_s + 360, 30)

    def test_a_dry_run_does_nothing(self, early: Cluster, name: str) -> None:
        at_s = int(time.time()) + 300
        out = self.reserve(early, name, at_s, "--duration", "1:00:00", "--nodes", "1", "--dry-run")
        command = out.splitlines()[-1]
        assert command.startswith("scontrol create reservation ReservationName=exam")
        assert early.process("scontrol", "show", "reservation", name).returncode != 0
        early.root(*command.split())
        assert "Users=user" in early.run("scontrol", "show", "reservation", "-o", name)

    def test_licences_are_kept_for_it(self, early: Cluster, name: str) -> None:
        """There are four of matlab."""
        at_s = int(time.time()) + 300
        options = ("--duration", "10m", "--nodes", "1")
        done = early.process(
            "schedbridge", "reserve", name, "--start", slurm_time(at_s), "--users", "user",
            *options, "--licenses", "matlab:5", user="root",
        )  # fmt: skip
        assert "licence matlab has 1 to 4 items" in done.stderr
        self.reserve(early, name, at_s, *options, "--licenses", "matlab:3")
        assert "Licenses=matlab:3" in early.run("scontrol", "show", "reservation", "-o", name)
        outside = early.sbatch("-n1", "-t10", "-L", "matlab:2")
        inside = early.sbatch("-n1", "-t5", "-L", "matlab:3", f"--reservation={name}")
        assert announced_s(early, outside) == at_s + 600
        assert announced_s(early, inside) == at_s
        told(early, outside, f"reservation {name}")

    def test_what_slurm_refuses_is_told(self, early: Cluster, name: str) -> None:
        done = early.process(
            "schedbridge", "reserve", name, "--start", "now+1hour", "--duration", "1h",
            "--nodes", "1", "--users", "nobody-knows-me", user="root",
        )  # fmt: skip
        assert done.returncode == 1
        assert "the controller refuses" in done.stderr

    def test_it_is_for_administrators(self, early: Cluster, name: str) -> None:
        done = early.process(
            "schedbridge", "reserve", name, "--start", "now+1hour", "--duration", "1h",
            "--nodes", "1", "--users", "user",
        )  # fmt: skip
        assert done.returncode == 1
        assert "only administrators may make reservations" in done.stderr
        done = early.process("schedbridge", "unreserve", name)
        assert "only administrators may remove reservations" in done.stderr
