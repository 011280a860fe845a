# SPDX-License-Identifier: Apache-2.0
"""MPI programs grow and shrink in a real job, by both engines."""

import pytest

from tests.integration.elastic.jobs import Elastic

HEAT = "elastic/{mpi}/heat 64 64 900 1 100000"
ENGINES = [("wheel", "join", "pmi2"), ("ompi", "relaunch", "pmix"), ("mpich", "relaunch", "pmi2")]


@pytest.fixture(scope="session")
def heat_result(session_elastic: Elastic) -> str:
    """The last line of a rigid run."""
    return session_elastic.rigid("elastic/wheel/heat 64 64 900 1 0")


@pytest.mark.parametrize(("mpi", "engine", "wire"), ENGINES)
def test_a_job_grows_and_shrinks_and_computes_the_same(elastic, heat_result, mpi, engine, wire):
    job = elastic.start(HEAT.format(mpi=mpi), "--mpi", wire)
    job.series()
    output = job.end()
    assert f"engine {engine}: by the self-test" in output
    widths = [line.split()[-1] for line in job.lines("heat")[:-1]]
    assert widths == ["2", "4", "2", "1"], output
    assert job.lines("heat")[-1] == heat_result
    assert "exit 0" in output


def test_two_processes_per_node_and_an_mpi_that_is_found_out(elastic):
    job = elastic.start("elastic/ompi/pi 400 1000 100000", tasks=2)
    assert job.change("grow", "n2")["outcome"] == "done"
    assert job.change("shrink", "n2")["outcome"] == "done"
    output = job.end()
    assert "trying --mpi=pmix" in output
    assert [line.split()[-1] for line in job.lines("pi")[:-1]] == ["4", "2"]
    assert job.lines("pi")[-1] == elastic.rigid("elastic/wheel/pi 400 1000")


def test_two_processes_per_node_join(elastic, heat_result):
    job = elastic.start(HEAT.format(mpi="wheel"), tasks=2)
    job.series()
    job.end()
    assert [line.split()[-1] for line in job.lines("heat")[:-1]] == ["4", "8", "4", "2"]
    assert job.lines("heat")[-1] == heat_result


@pytest.mark.parametrize(("mpi", "engine", "wire"), ENGINES[:2])
def test_a_program_that_never_probes_keeps_its_nodes(elastic, mpi, engine, wire):
    job = elastic.start(f"elastic/{mpi}/heat 64 64 600 100000 100000", "--mpi", wire)
    got = job.change("grow", "n2", within_s=3.0)
    assert got["outcome"] == "refused"
    assert got["held"] == ["n1"]
    got = job.change("grow", "n2", within_s=30.0, withdraw_s=2.0)
    assert (got["outcome"], got["reason"]) == ("refused", "It was withdrawn.")
    output = job.end()
    assert job.lines("heat")[-1] == elastic.rigid("elastic/wheel/heat 64 64 600 100000 0")
    assert "exit 0" in output


def test_a_process_that_fails_in_the_window_ends_the_job(elastic):
    job = elastic.start("elastic/wheel/breaking begin", "--mpi", "pmi2")
    got = job.order(do="grow", id="1", add=["n2"], within_s=20)
    assert got["outcome"] in ("failed", None)
    assert "exit 9" in job.end()


def test_a_new_process_that_fails_is_given_up_and_the_job_goes_on(elastic):
    job = elastic.start("elastic/wheel/breaking joiner", "--mpi", "pmi2")
    got = job.change("grow", "n2", within_s=20)
    assert got["outcome"] == "refused"
    assert got["held"] == ["n1"]
    output = job.end()
    assert "breaking: ended" in output
    assert "exit 0" in output


@pytest.mark.parametrize(("mpi", "engine", "wire"), ENGINES)
def test_all_processes_are_told_the_phase(elastic, mpi, engine, wire):
    job = elastic.start(f"elastic/{mpi}/breaking phase", "--mpi", wire)
    assert job.change("grow", "n2")["outcome"] == "done", job.output()
    assert job.change("shrink", "n2")["outcome"] == "done", job.output()
    output = job.end()
    assert "breaking: ended" in output
    assert "exit 0" in output


def test_a_program_that_ends_while_it_is_asked(elastic):
    job = elastic.start("elastic/wheel/breaking end", "--mpi", "pmi2")
    got = job.order(do="grow", id="1", add=["n2"], within_s=60)
    assert got["outcome"] in ("failed", None)
    assert "exit 0" in job.end()


@pytest.mark.parametrize(
    ("mpi", "wire", "grow", "shrink"),
    [
        ("wheel", "pmi2", ["starting", "asked", "going"], ["asked", "going"]),
        ("ompi", "pmix", ["asked", "parked", "restarting"], ["going", "restarting"]),
    ],
)
def test_the_launcher_may_be_killed_at_any_stage(elastic, heat_result, mpi, wire, grow, shrink):
    job = elastic.start(HEAT.format(mpi=mpi), "--mpi", wire)
    for number, stage in enumerate([*grow, *shrink]):
        job.kill_launcher_at(stage)
        got = job.change("grow", "n2") if number % 2 == 0 else job.change("shrink", "n2")
        assert got["outcome"] == "done", (stage, got, job.output())
    output = job.end()
    assert len(job.killed()) >= 3, output
    assert job.lines("heat")[-1] == heat_result
    assert "exit 0" in output


def test_without_an_agent_the_program_is_rigid(elastic, heat_result):
    job = elastic.start("elastic/wheel/heat 64 64 900 1 0", "--mpi", "pmi2", agent=False)
    output = job.end()
    assert "no agent answers" in output
    assert job.lines("heat") == [heat_result]
    assert "exit 0" in output


def test_a_program_without_the_library_keeps_its_exit_code(elastic):
    job = elastic.start("sh -c 'exit 7'", "--mpi", "pmi2", agent=False)
    assert "exit 7" in job.end()


def test_adaptive_refinement_tells_its_need(elastic):
    job = elastic.start("elastic/wheel/amr 600 2000 100000", "--mpi", "pmi2")
    job.series()

    def needs() -> set[int]:
        return {said["max"] for said in job.order(do="heard") if said["op"] == "bounds"}

    elastic.wait_for("the front moves, and with it the need", lambda: len(needs()) > 2)
    output = job.end()
    assert [line.split()[-1] for line in job.lines("amr")[:-1]] == ["2", "4", "2", "1"], output
    assert job.lines("amr")[-1] == elastic.rigid("elastic/wheel/amr 600 2000")


@pytest.mark.parametrize(("mpi", "engine", "wire"), ENGINES[1:])
def test_fortran(elastic, mpi, engine, wire):
    job = elastic.start(f"elastic/{mpi}/heat1d 1000 600 100000", "--mpi", wire)
    job.series()
    job.end()
    assert [line.split()[-1] for line in job.lines("heat1d")[:-1]] == ["2", "4", "2", "1"]
    assert job.lines("heat1d")[-1] == elastic.rigid("elastic/mpich/heat1d 1000 600")
