# SPDX-License-Identifier: Apache-2.0
"""A link, the service's cycles and a double of a server in one thread and in virtual time."""

import contextlib
import random
import threading

import grpc

from bridge.pbs.ifl.port import IflError
from bridge.pbs.link.assembly import PbsModel
from bridge.pbs.link.commands import Commands
from bridge.pbs.link.loop import Link
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.stream import Stream
from bridge.registry import build, parse_policy
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider
from tests.pbs_double import PbsDouble, parts_of
from tests.unit.rpc.worlds import some_cycles


class Silent(grpc.RpcError):
    """The service does not answer."""

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return ""


class Service:
    """The service's end of the wire, without sockets."""

    def __init__(self, policy="conservative"):
        self.policy, self.silent, self.calls = policy, False, 0
        self.meanwhile = lambda: None  # what happens, once, while a decision is made
        self.restart()

    def restart(self):
        decider = Decider(build(parse_policy(self.policy)))
        self.cycles = some_cycles(decider.decide, self.policy, session=Session(clock=lambda: 0.0))
        self.cycles.session = Session(clock=lambda: 0.0)
        self.cycles.service_epoch += random.Random(self.calls).randrange(1, 1000)

    def Hello(self, request, timeout):  # noqa: N802 - as generated
        return self._answer(self.cycles.greet, request)

    def Cycle(self, request, timeout):  # noqa: N802 - as generated
        return self._answer(self.cycles.run, request)

    def _answer(self, method, request):
        self.calls += 1
        if self.silent:
            raise Silent
        reply = method(request)
        if getattr(reply, "decisions", None):
            self.meanwhile()
            self.meanwhile = lambda: None
        return reply


class Supervised:
    """The supervisor's end: it lets the link register when nobody else is."""

    def __init__(self):
        self.words, self.yours = [], False

    def tell(self, word, text=""):
        self.words.append(word)
        self.yours = self.yours or word == "ready"

    def may_register(self):
        yours, self.yours = self.yours, False
        return yours


class Written:
    """Comments, written at once."""

    def __init__(self, ifl):
        self.ifl, self.held, self.told = ifl, False, {}

    def write(self, job_id, attributes):
        self.told[job_id] = attributes

    def forget(self, job_id):
        self.told.pop(job_id, None)

    def keep_only(self, job_ids):
        pass

    def reset(self):
        self.told.clear()

    def use(self, connection):
        self.held = connection is None


class World:
    """Everything, and the passing of time."""

    def __init__(self, vnodes=None, policy="conservative", monkeypatch=None):
        vnodes = vnodes or {f"n{i}": {"ncpus": "4", "mem": "8gb"} for i in range(1, 5)}
        self.pbs = PbsDouble(vnodes)
        self.service, self.parent = Service(policy), Supervised()
        self.new_link()

    def new_link(self):
        """A new life of the link: the old one was killed, and its connections closed."""
        pbs = self.pbs
        if pbs.registered is not None:
            for handle in pbs.registered:
                pbs.disconnect(handle)
        model = PbsModel()
        stream = Stream("unix:/none", model.hello(), stub=self.service, clock=lambda: pbs.now)
        self.written = Written(pbs)
        self.link = Link(
            LinkSettings(), pbs, stream, model, self.parent, self.written,
            clock=lambda: pbs.now, wall=lambda: pbs.now,
        )  # fmt: skip

    def turn(self, seconds=0.25):
        """Commands are read, the link takes a turn, and time passes."""
        commands = self.link.registration.commands
        while commands is not None and self.pbs.has_command and commands._take():
            pass
        self.link.turn()
        self.pbs.advance(seconds)

    def run(self, seconds, step_s=0.25):
        for _ in range(int(seconds / step_s)):
            self.turn(step_s)


@contextlib.contextmanager
def without_threads(monkeypatch):
    """The reader of commands has no thread: the world reads them."""
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(Commands, "end", lambda self: None)
    yield


def judge(pbs):
    """What the history breaks: vnodes with more than they have, jobs that run twice."""
    found, held = [], {}
    for now, what, job_id, exec_vnode in pbs.history:
        if what == "asked":
            if job_id in held:
                found.append(f"{job_id} was started twice at {now}")
            held[job_id] = exec_vnode
            for vnode, amounts in pbs.capacity.items():
                used = sum(
                    int(taken.get("ncpus", 0))
                    for where in held.values()
                    for name, taken in parts_of(where)
                    if name == vnode
                )
                if used > int(amounts["ncpus"]):
                    found.append(f"{vnode} holds {used} cpus at {now}")
        elif what in {"ended", "deleted", "queued again"}:
            held.pop(job_id, None)
    return found


def lost(error):
    raise IflError("lost", -1, str(error))
