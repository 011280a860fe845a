# SPDX-License-Identifier: Apache-2.0
"""A simulated controller and the real service: the wire changes nothing, and survives a lot."""

import random
import socket
import threading
import time

import grpc
import pytest

from bridge.errors import ControllerError, StaleSnapshot, Unreachable
from bridge.extensions.elastic.resizing.launchers import Willing
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import random_faults
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.system import pool_of, read_system
from bridge.registry import PRESETS, build, parse_policy
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.workloads import random_workload
from tests.simulation.services import a_home, a_service, controller_of, operator_of
from tests.unit.rpc.worlds import a_delta, a_full, a_hello, a_job

SHARED = """
name: shared
nodes:
  - {names: "thin[01-06]", cpus: 4, memory_mib: 4096}
  - {names: "fat[1-2]", cpus: 8, memory_mib: 16384, gres: {gpu: 2}, features: [big]}
partitions:
  - {name: batch, nodes: "thin[01-06],fat[1-2]", max_time_s: 86400}
"""


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def in_process(preset):
    return Decider(build(PRESETS[preset])).decide


def patiently(decide, snapshot):
    """The channel needs a moment until it connects again."""
    for _ in range(100):
        try:
            return decide(snapshot)
        except Unreachable:
            time.sleep(0.05)
    raise AssertionError("the service is back, but cannot be reached")


def assert_same(one, other):
    assert (one.schedule.start_s == other.schedule.start_s).all()
    assert (one.schedule.end_s == other.schedule.end_s).all()
    assert (one.nodes == other.nodes).all()
    assert one.refusals == other.refusals


@pytest.mark.parametrize("preset", ["slurm-like", "easy", "conservative"])
def test_the_wire_changes_nothing(home, preset):
    workload, system = random_workload(7, n_jobs=120, processors=24), pool_of(24)
    with a_service(home, policy=preset), RemoteDecider(controller_of(home)) as remote:
        served = simulate(workload, system, remote.decide)
    assert_same(served, simulate(workload, system, in_process(preset)))
    assert not served.refusals


def test_the_wire_changes_nothing_while_jobs_grow_and_shrink(home):
    """Slow: simulates a workload alone and through a service."""
    workload, system = esp(100, seed=1).first(80), pool_of(32)
    willing = a_service(home, Willing(), policy="fpsma")
    with willing, RemoteDecider(controller_of(home)) as remote:
        served = simulate(workload, system, remote.decide)
    alone = simulate(workload, system, in_process("fpsma"))
    assert_same(served, alone)
    assert not served.refusals
    ran_s = alone.schedule.end_s - alone.schedule.start_s
    assert (ran_s != workload.runtime_s).sum() > 20  # at other widths than the nominal one


@pytest.mark.parametrize("predictor", ["last-two", "name-history"])
def test_the_wire_tells_what_predictors_learn_from(home, predictor):
    workload, system = random_workload(7, n_jobs=120, processors=24), pool_of(24)
    policy = {"preset": "easy", "predict": predictor}
    with a_service(home, policy=policy), RemoteDecider(controller_of(home)) as remote:
        served = simulate(workload, system, remote.decide)
        with OperatorClient(operator_of(home)) as operator:
            assert f"predict: {predictor}" in operator.policy().yaml
    alone = simulate(workload, system, Decider(build(parse_policy(policy))).decide)
    assert_same(served, alone)
    by_limits = simulate(workload, system, in_process("easy"))
    assert (alone.schedule.start_s != by_limits.schedule.start_s).any()


def test_the_wire_changes_nothing_on_shared_nodes(home, tmp_path):
    (tmp_path / "system.yaml").write_text(SHARED)
    system = read_system(tmp_path / "system.yaml")
    workload = random_workload(11, n_jobs=100, processors=20)
    with a_service(home, policy="easy"), RemoteDecider(controller_of(home)) as remote:
        served = simulate(workload, system, remote.decide)
    assert_same(served, simulate(workload, system, in_process("easy")))
    assert not served.refusals


@pytest.mark.parametrize("seed", range(3))
def test_the_wire_changes_nothing_while_nodes_and_jobs_are_lost(home, seed):
    workload, system = random_workload(seed, n_jobs=80, processors=16), pool_of(16)
    faults = random_faults(seed, workload, 16, 30)
    with a_service(home, policy="easy"), RemoteDecider(controller_of(home)) as remote:
        served = simulate(workload, system, remote.decide, faults=faults)
    local = simulate(workload, system, in_process("easy"), faults=faults)
    assert served.schedule.finished.sum() == local.schedule.finished.sum()
    assert not served.refusals


def test_a_service_that_restarts_in_mid_stream_is_told_everything_again(home):
    """Slow: replays a trace through two services."""
    workload, system = random_workload(3, n_jobs=100, processors=16), pool_of(16)
    requested = [0]
    with RemoteDecider(controller_of(home)) as remote:
        current = [a_service(home, policy="easy")]
        current[0].__enter__()

        def decide(snapshot):
            requested[0] += 1
            if requested[0] % 40 == 0:
                current[0].__exit__(None, None, None)
                with pytest.raises(Unreachable):
                    remote.decide(snapshot)
                current[0] = a_service(home, policy="easy")
                current[0].__enter__()
                return patiently(remote.decide, snapshot)
            return remote.decide(snapshot)

        try:
            served = simulate(workload, system, decide)
        finally:
            current[0].__exit__(None, None, None)
    assert requested[0] > 80
    assert_same(served, simulate(workload, system, in_process("easy")))


def test_a_stranger_who_calls_in_between_costs_a_full_report_only(home):
    """Another controller of the same epoch messes generations up; a newer one takes over."""
    workload, system = random_workload(5, n_jobs=60, processors=16), pool_of(16)
    requested = [0]
    with a_service(home, policy="easy") as service, RemoteDecider(controller_of(home)) as remote:
        cycles = service.scheduling.cycles

        def decide(snapshot):
            requested[0] += 1
            if requested[0] % 10 == 0:  # a reply that was lost on its way
                epoch, held = cycles.session.epoch, cycles.session.generation
                cycles.run(a_delta(held, epoch=epoch, now_s=snapshot.now_s))
            return remote.decide(snapshot)

        served = simulate(workload, system, decide)
        assert cycles.session.full_requests >= 5
        assert_same(served, simulate(workload, system, in_process("easy")))
        with grpc.insecure_channel(controller_of(home)) as channel:
            newer = scheduler_pb2_grpc.SchedulerStub(channel)
            newer.Hello(a_hello(epoch=cycles.session.epoch + 1))
        with pytest.raises(StaleSnapshot):
            simulate(workload, system, remote.decide)


def test_garbage_on_the_socket_disturbs_nobody(home):
    workload, system = random_workload(9, n_jobs=60, processors=16), pool_of(16)
    rng = random.Random(1)
    over = threading.Event()

    def shout():
        while not over.is_set():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(1)
                try:
                    client.connect(f"{home}/c/s")
                    start = rng.choice(
                        [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n"]
                    )
                    client.sendall(start + rng.randbytes(rng.randrange(2000)))
                    client.recv(100)
                except OSError:
                    pass
            over.wait(0.01)

    with a_service(home, policy="easy"), RemoteDecider(controller_of(home)) as remote:
        shouters = [threading.Thread(target=shout) for _ in range(2)]
        for shouter in shouters:
            shouter.start()
        try:
            served = simulate(workload, system, remote.decide)
        finally:
            over.set()
            for shouter in shouters:
                shouter.join()
    assert_same(served, simulate(workload, system, in_process("easy")))


def test_impossible_messages_are_answered_with_their_code(home):
    with a_service(home), grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Hello(a_hello(wire_version=9))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        stub.Hello(a_hello(epoch=5))
        bad = a_full([a_job("1")], epoch=5, now_s=-1)
        assert stub.Cycle(bad).need_full
        with pytest.raises(grpc.RpcError) as caught:
            stub.Cycle(bad)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.details() == "now_s: -1 is not a time"
        with pytest.raises(grpc.RpcError) as caught:
            stub.Cycle(a_full(epoch=4))
        assert caught.value.code() is grpc.StatusCode.ABORTED
        raw = channel.unary_unary("/schedbridge.v1.Scheduler/Cycle")
        with pytest.raises(grpc.RpcError) as caught:
            raw(b"\xff\xff\xff")
        assert caught.value.code() is grpc.StatusCode.INTERNAL  # gRPC's own: cannot be parsed
        assert len(stub.Cycle(a_full([a_job("1")], epoch=5)).decisions) == 1


def test_a_running_cycle_is_finished_before_the_end(home):
    inside, finish = threading.Event(), threading.Event()
    with a_service(home) as service, grpc.insecure_channel(controller_of(home)) as channel:
        inner = service.scheduling.cycles._decide

        def decide(snapshot):
            inside.set()
            assert finish.wait(300)
            return inner(snapshot)

        service.scheduling.cycles._decide = decide
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello())
        call = stub.Cycle.future(a_full([a_job("1")]), timeout=300)
        assert inside.wait(300)
        stopping = threading.Thread(target=service.stop)
        stopping.start()
        finish.set()
        assert len(call.result().decisions) == 1
        stopping.join(20)


def test_operators_read_while_a_cycle_runs(home):
    inside, finish = threading.Event(), threading.Event()
    with a_service(home) as service, grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello())
        stub.Cycle(a_full([a_job("1")]))
        inner = service.scheduling.cycles._decide

        def decide(snapshot):
            inside.set()
            assert finish.wait(300)
            return inner(snapshot)

        service.scheduling.cycles._decide = decide
        call = stub.Cycle.future(a_delta(1), timeout=300)
        assert inside.wait(300)
        try:
            with OperatorClient(operator_of(home)) as operator:
                assert operator.status().jobs_pending == 1
                assert [job.job_id for job in operator.plan().jobs] == ["1"]
                assert operator.explain("1").lines
                assert operator.policy().yaml
        finally:
            finish.set()
        call.result()


def planned_by(operator, policy):
    """Whether operators come to see a plan of this policy: they see a cycle a moment late."""
    for _ in range(3000):
        if operator.plan().policy == policy:
            return True
        time.sleep(0.02)
    return False


def test_an_exchanged_policy_decides_from_the_next_cycle_on(home):
    with a_service(home, policy="slurm-like"), OperatorClient(operator_of(home)) as operator:
        with grpc.insecure_channel(controller_of(home)) as channel:
            stub = scheduler_pb2_grpc.SchedulerStub(channel)
            stub.Hello(a_hello())
            stub.Cycle(a_full([a_job("1")]))
            assert planned_by(operator, "slurm-like")
            operator.policy("easy")
            stub.Cycle(a_delta(1))
            assert planned_by(operator, "easy")
        with pytest.raises(ControllerError, match=r"policy.plan: no algorithm 'x'"):
            operator.policy("{plan: x}")


def test_nobody_there(home):
    nobody = pytest.raises(Unreachable, match="no answer")
    with RemoteDecider(controller_of(home)) as remote, nobody:
        simulate(random_workload(1, 5, 4), pool_of(4), remote.decide)


def test_what_slurm_cannot_say_is_refused(home, tmp_path):
    from bridge.errors import SnapshotError
    from bridge.lab.sim.cluster.controller import Controller

    (tmp_path / "system.yaml").write_text(SHARED)
    controller = Controller(random_workload(1, 5, 20), read_system(tmp_path / "system.yaml"))
    for job in range(5):
        controller.submit(job)
    snapshot = controller.snapshot(1000)
    snapshot.jobs.per_node[:, 0] = 1
    snapshot.jobs.tasks[:] = 3
    with (
        a_service(home),
        RemoteDecider(controller_of(home)) as remote,
        pytest.raises(SnapshotError, match="more than the wire can state"),
    ):
        remote.decide(snapshot)


def test_the_clock_of_the_controller_decides(home):
    """The service never looks at its own clock: instants of 1993 and 2100 work alike."""
    with a_service(home), grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        for epoch, now_s in ((1, 741_880_318), (2, 4_102_444_800)):
            stub.Hello(a_hello(epoch=epoch))
            jobs = [
                a_job(
                    str(job),
                    request=pb.Request(
                        partitions=["batch"], min_nodes=4, max_nodes=4, exclusive=True
                    ),
                )
                for job in (1, 2)
            ]
            reply = stub.Cycle(a_full(jobs, epoch=epoch, now_s=now_s))
            assert reply.decisions[1].planned_start.start_s == now_s + 600


def test_a_decision_is_one_call_with_what_has_changed(home, monkeypatch):
    """Slow: simulates 300 jobs through a service."""
    workload, system = random_workload(2, n_jobs=300, processors=8), pool_of(8)
    with a_service(home, policy="easy"), RemoteDecider(controller_of(home)) as remote:
        cycle, reports = remote._stub.Cycle, list[pb.CycleRequest]()

        def noted(report, **options):
            reports.append(report)
            return cycle(report, **options)

        monkeypatch.setattr(remote._stub, "Cycle", noted)
        served = simulate(workload, system, remote.decide)
    assert len(reports) == len(served.decision_ms)
    assert [at for at, report in enumerate(reports) if report.base_generation == 0] == [0]
    assert sum(len(report.nodes) for report in reports) == 8
    told = sum(len(report.jobs) for report in reports)
    assert told <= 2 * 300  # when it is submitted, and when it starts
