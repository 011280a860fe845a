# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.extensions.sharing.commands import coschedule
from bridge.rpc.pb import coscheduling_pb2 as pb

NOWHERE = ("--socket", "/nowhere/s")


@pytest.mark.parametrize("words", [["show"], ["on"], ["off"], ["export"], ["show", "--json"]])
def test_without_a_service_there_is_one_line(schedbridge, words):
    code, out, err = schedbridge("coschedule", *words, *NOWHERE)
    assert (code, out) == (1, "")
    assert "no service at /nowhere/s" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("missing", None, "cannot be read"), ("binary", b"\xff\xfe", "is not text in UTF-8")],
)
def test_a_file_that_cannot_be_read_is_one_line(schedbridge, tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = schedbridge("coschedule", "import", str(tmp_path / name), *NOWHERE)
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("\n") == 1


class Service:
    """Answers as a service would, and remembers what it was asked."""

    def __init__(self, reply):
        self.reply, self.requested = reply, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def of_extension(self, method, request, reply):
        assert (method, reply) == ("Coscheduling", pb.CoschedulingReply)
        self.requested.append(request)
        return self.reply


@pytest.fixture
def service(monkeypatch):
    reply = pb.CoschedulingReply(
        now_s=100, policy="pairs", partitions=["batch"], mean_harm=0.021, observations=7,
        guests=[pb.RunningGuest(job_id="12", user="ann", host_job_id="11", nodes="n[1-2]",
                                quota_milli_cpus=2000, weight=1, requeued="too slow")],
        pairs=[pb.SharedPair(host_user="ann", host_name="blast", guest_user="ann",
                             guest_name="mont\x1bage", node_count=2, guest_cpus=1.5,
                             ceilings=[pb.CeilingHarm(ceiling_percent=50, observations=3,
                                                      harm=0.04, expected=0.05, at_most=0.08),
                                       pb.CeilingHarm(ceiling_percent=100)])],
        experts=[pb.SharingExpert(name="idle CPUs", weight=0.25, risk=1.5)],
        text='{"format": "x"}',
    )  # fmt: skip
    found = Service(reply)
    monkeypatch.setattr(coschedule, "ask", lambda *_: found)
    return found


def test_what_is_known_is_shown(schedbridge, service):
    code, out, _ = schedbridge("coschedule", "show")
    text = " ".join(out.split())
    assert code == 0
    assert "policy pairs, in batch" in text
    assert "mean harm over users: 2.1%, of 7 observations" in text
    assert "12 ann 11 n[1-2] 2.00 1 too slow" in text
    assert "ann:blast ann:mont?age 2 1.5 50 % 3 4.0% 5.0%, at most 8.0%" in text
    assert "100 %" not in text
    assert "idle CPUs" not in text
    service.reply.policy = "asax"
    assert "idle CPUs 0.250 1.500" in " ".join(schedbridge("coschedule", "show")[1].split())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"off_since_s": 50}, "an operator ended it"),
        ({"off_since_s": 50, "off_by_policy": True}, "the mean harm was too large"),
        ({"stopped_users": ["eve", "m\x1b"]}, "the jobs of eve, m? down too much"),
        ({"policy": "none"}, "policy none: no job becomes a guest"),
        ({"partitions": []}, "in no partition jobs may share nodes"),
    ],
)
def test_why_nobody_shares(schedbridge, service, changed, words):
    for name, value in changed.items():
        if name == "partitions":
            del service.reply.partitions[:]
        elif name == "stopped_users":
            service.reply.stopped_users.extend(value)
        else:
            setattr(service.reply, name, value)
    assert words in " ".join(schedbridge("coschedule", "show")[1].split())


def test_orders_and_files(schedbridge, service, tmp_path):
    file = tmp_path / "learnt.json"
    assert schedbridge("coschedule", "off")[0] == 0
    assert schedbridge("coschedule", "on", "--json")[0] == 0
    assert schedbridge("coschedule", "export", str(file))[0] == 0
    assert file.read_text() == '{"format": "x"}\n'
    assert schedbridge("coschedule", "export")[1] == '{"format": "x"}\n'
    code, out, _ = schedbridge("coschedule", "import", str(file))
    assert (code, out) == (0, "imported: 1 pairs of applications\n")
    order = pb.CoschedulingRequest
    requested = [request.order for request in service.requested]
    assert requested == [order.OFF, order.ON, order.EXPORT, order.EXPORT, order.IMPORT]
    assert service.requested[-1].text == '{"format": "x"}\n'


def test_an_export_that_cannot_be_written_is_one_line(schedbridge, service, tmp_path):
    code, _, err = schedbridge("coschedule", "export", str(tmp_path))
    assert code == 1
    assert "cannot be written" in err
    assert err.count("\n") == 1
