# SPDX-License-Identifier: Apache-2.0
"""Nodes and their resources, licences and reservations, as reports tell of them."""

from bridge.model.job import Hold
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.rpc.worlds import (
    a_delta,
    a_full,
    a_job,
    a_node,
    a_request,
    a_running_job,
    a_session,
    jobs_of,
    partitions,
    running_of,
    some_nodes,
)


def test_a_new_kind_of_device_widens_the_vectors():
    gpu = a_request(gres_per_node=[pb.Gres(name="gpu", count=2)])
    session = a_session(a_full([a_job("1", request=gpu), a_running_job("2", "n1")]))
    assert jobs_of(session)["1"]["hold"] == Hold.BAD_REQUEST
    node = a_node("n0", gres=[pb.Gres(name="gpu:a100", count=4)])
    assert session.apply(a_delta(1, nodes=[node]))
    snapshot, _ = session.snapshot()
    assert snapshot.resources == ("cpus", "mem_mib", "gpu", "gpu:a100")
    assert snapshot.nodes.capacity[0].tolist() == [4, 1000, 4, 4]
    assert snapshot.jobs.per_node[0].tolist() == [1, 0, 2, 0]
    assert snapshot.running.use.tolist() == [[4, 0, 0, 0]]
    assert snapshot.jobs.hold.tolist() == [Hold.NONE]


def test_what_jobs_do_not_use_up_each_of_them_may_have():
    lustre = pb.Gres(name="lustre:fast", count=4, no_consume=True)
    nodes = [a_node("n0"), a_node("n1", gres=[lustre]), a_node("n2", gres=[pb.Gres(name="lustre")])]
    holds = a_running_job("9", "n1", cpus=1)
    holds.allocation.uses[0].gres.append(pb.Gres(name="lustre:fast", count=4))
    asks = [
        a_job(str(number), request=a_request(gres_per_node=[pb.Gres(name=name, count=count)]))
        for number, (name, count) in enumerate([("lustre", 4), ("lustre:fast", 1), ("lustre", 5)])
    ]
    session = a_session(a_full([holds, *asks], nodes))
    snapshot, _ = session.snapshot()
    assert snapshot.resources == ("cpus", "mem_mib")
    assert snapshot.running.use.tolist() == [[1, 0]]
    assert [sorted(excluded) for excluded in snapshot.jobs.excluded[:2]] == [[0, 2], [0, 2]]
    assert jobs_of(session)["2"]["hold"] == Hold.BAD_REQUEST  # no node has five
    # One more node, then one less: indexes follow.
    assert session.apply(a_delta(1, nodes=[a_node("n3")]))
    rooms = partitions("n[1-3]")
    assert session.apply(a_delta(2, removed_nodes=["n0"], partitions=rooms))
    snapshot, _ = session.snapshot()
    assert sorted(snapshot.jobs.excluded[0]) == [1, 2]
    more = pb.Gres(name="lustre:fast", count=5, no_consume=True)
    assert session.apply(a_delta(3, nodes=[a_node("n3", gres=[more])]))
    snapshot, _ = session.snapshot()
    assert sorted(snapshot.jobs.excluded[0]) == [1]
    assert jobs_of(session)["2"]["hold"] == Hold.NONE


def test_nodes_leave_and_indexes_follow():
    session = a_session(
        a_full([a_running_job("2", "n[2-3]"), a_job("1", request=a_request(required_nodes="n3"))])
    )
    assert session.apply(a_delta(1, removed_nodes=["n0"], partitions=partitions("n[1-3]")))
    snapshot, _ = session.snapshot()
    assert snapshot.nodes.names == ("n1", "n2", "n3")
    assert snapshot.running.nodes.tolist() == [1, 2]
    assert snapshot.jobs.required[0] == (2,)
    assert snapshot.partitions[0].nodes.tolist() == [0, 1, 2]


def test_a_state_change_keeps_the_tables_of_jobs():
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    before, _ = session.snapshot()
    assert session.apply(a_delta(1, nodes=[a_node("n0", usable=False, state="DOWN")]))
    after, _ = session.snapshot()
    assert after.nodes.usable.tolist() == [False, True, True, True]
    assert before.nodes.usable.tolist() == [True] * 4  # what was handed out stays
    assert after.jobs is before.jobs
    assert after.running is before.running


def test_hyper_threads_round_where_cores_are_whole():
    nodes = some_nodes(threads_per_core=2)
    job = a_job("1", request=a_request(min_nodes=1, max_nodes=1, tasks=3))
    whole = a_session(a_full([job], nodes=nodes), whole_cores=True)
    assert jobs_of(whole)["1"]["per_node"][0] == 4
    assert jobs_of(a_session(a_full([job], nodes=nodes)))["1"]["per_node"][0] == 3


def test_memory_of_running_jobs_counts_only_where_it_is_consumed():
    request = a_full([a_running_job("1", "n0", memory_mib=500)])
    assert running_of(a_session(request))["1"]["use"] == [[4, 500]]
    assert running_of(a_session(request, memory_consumable=False))["1"]["use"] == [[4, 0]]


def test_licences_and_reservations():
    wants = a_request(reservation="r", licences=[pb.LicenceUse(name="l", count=2)])
    session = a_session(
        a_full(
            [a_job("1", request=wants)],
            licences=pb.Licences(items=[pb.Licence(name="l", total=5, used_elsewhere=2)]),
            reservations=pb.Reservations(
                items=[
                    pb.Reservation(
                        name="r", start_s=5, end_s=9, nodes="n1",
                        licences=[pb.LicenceUse(name="l", count=1)],
                    )
                ]
            ),
        )
    )  # fmt: skip
    snapshot, _ = session.snapshot()
    assert (snapshot.licences, snapshot.licence_total.tolist()) == (("l",), [3])
    assert snapshot.reservations[0].nodes.tolist() == [1]
    assert snapshot.reservations[0].licences.tolist() == [1]
    assert snapshot.jobs.reservation.tolist() == [0]
    assert snapshot.jobs.licences.tolist() == [[2]]
