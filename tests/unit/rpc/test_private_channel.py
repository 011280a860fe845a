# SPDX-License-Identifier: Apache-2.0
import os
import socket
import threading

import pytest

from bridge.rpc.transport.private_channel import Asker, Channel, MessageKind, RemoteRefusal


@pytest.fixture
def ends():
    """An asker, the other end, and what is told when that is gone."""
    here, there = socket.socketpair()
    gone = threading.Event()
    asker, other = Asker(Channel(here), gone.set), Channel(there)
    yield asker, other, gone
    other.close()
    assert gone.wait(300)


def test_answers_come_in_any_order(ends):
    asker, other, _ = ends
    requested = [asker.ask(MessageKind.VIEW, [str(n).encode()]) for n in range(3)]
    frames = [other.receive() for _ in requested]
    for number, kind, (part,) in reversed(frames):
        assert kind == MessageKind.VIEW
        other.send(number, MessageKind.ANSWER, [b"answer ", bytes(part), b""])
    assert [found.result(30) for found in requested] == [
        [b"answer ", str(n).encode(), b""] for n in range(3)
    ]


def test_no_is_an_answer(ends):
    asker, other, _ = ends
    requested = asker.ask(MessageKind.POLICY)
    number, _, parts = other.receive()
    assert parts == []
    other.send(number, MessageKind.ERROR, [b"INVALID_ARGUMENT", b"no such policy"])
    with pytest.raises(RemoteRefusal, match="no such policy") as caught:
        requested.result(30)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_large_parts_and_answers_nobody_waits_for(ends):
    asker, other, _ = ends
    data = os.urandom(5_000_000)
    threading.Thread(target=asker.tell, args=(MessageKind.REFUSED, [data, b"x"])).start()
    assert other.receive() == (0, MessageKind.REFUSED, [data, b"x"])
    other.send(99, MessageKind.ANSWER)  # of a question that was never put
    given_up = asker.ask(MessageKind.METRICS)
    given_up.cancel()
    number, _, _ = other.receive()
    other.send(number, MessageKind.ANSWER, [b"late"])
    requested = asker.ask(MessageKind.METRICS)
    number, _, _ = other.receive()
    other.send(number, MessageKind.ANSWER, [b"page"])
    assert requested.result(30) == [b"page"]


def test_a_frame_that_is_cut_off_is_the_end():
    here, there = socket.socketpair()
    there.sendall(b"\x01\x00\x00")
    there.close()
    assert Channel(here).receive() is None
    here.close()
