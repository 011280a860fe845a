# SPDX-License-Identifier: Apache-2.0
"""Other users of the machine, in processes of their own: some attack, one asks in between.

They need nothing of this checkout, which they may not be able to read: attackers have the standard
library only; who asks imports what it needs before it becomes somebody else.
"""

import subprocess
import sys
from contextlib import contextmanager

from tests.simulation import services

ATTACKER, VICTIM = 65533, 65534

_BECOME = """
import encodings.idna, os, socket, struct, sys, threading, time
os.setgroups([])
os.setgid({uid})
os.setuid({uid})
"""

_HTTP2 = r'''
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

def frame(kind, flags, stream, body=b""):
    head = struct.pack(">I", len(body))[1:] + bytes((kind, flags))
    return head + struct.pack(">I", stream) + body

def text(value):
    return bytes((len(value),)) + value.encode()

def headers(stream, method="Plan"):
    """Those of a call, which has no effect."""
    found = {
        ":method": "POST", ":scheme": "http", ":path": "/schedbridge.v1.Operator/" + method,
        ":authority": "localhost", "content-type": "application/grpc", "te": "trailers",
    }
    block = b"".join(b"\0" + text(name) + text(value) for name, value in found.items())
    return frame(1, 4, stream, block)

def question(stream):
    """An empty message, and the end of the call's questions."""
    return frame(0, 1, stream, bytes(5))

def wide_open():
    """Takes any amount of data."""
    settings = struct.pack(">HI", 4, 0x7fffffff)
    return frame(4, 0, 0, settings) + frame(8, 0, 0, struct.pack(">I", 0x7fff0000))

def connect(path):
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(60)
    found.connect(path)
    return found
'''


@contextmanager
def attack(code, *arguments, uid=ATTACKER):
    """Runs an attack; it stands for as long as the block, from its first line of output on."""
    program = _BECOME.format(uid=uid) + _HTTP2 + code
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = process.stdout.readline()
        assert said == "begun\n", said + process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


_ASK = """
import os, sys
import bridge.rpc.clients.operator_client, grpc
from bridge.errors import BridgeError
from bridge.rpc.clients.operator_client import OperatorClient
from encodings import idna
grpc.insecure_channel("unix:/nowhere").close()  # loads what it needs
os.setgroups([])
os.setgid({uid})
os.setuid({uid})
print("ready", flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    try:
        with OperatorClient(sys.argv[1], timeout_s=60) as client:
            answer = getattr(client, word)(*rest)
        print("answered", len(str(answer)), flush=True)
    except BridgeError as error:
        print(" ".join(str(error).split()), flush=True)
"""


class Asker:
    """An ordinary user who asks the service."""

    def __init__(self, process):
        self._process = process

    def ask(self, *words):
        """The answer to a question; "answered ..." if all is well."""
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def is_served(self, job="2"):
        found = [self.ask("status"), self.ask("plan"), self.ask("explain", job)]
        assert all(one.startswith("answered") for one in found), found


@contextmanager
def an_asker(address, uid=VICTIM):
    process = subprocess.Popen(
        [sys.executable, "-c", _ASK.format(uid=uid), address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=services.ENVIRONMENT,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        yield Asker(process)
    finally:
        process.kill()
        process.communicate()


TAKING_NAMES = r"""
# The names of the service that are listed, HEAD-USER-COUNT, tell which come next.
import re
held = [connect(sys.argv[1]) for _ in range(4)]
for one in held:
    one.sendall(PREFACE + frame(4, 0, 0))
time.sleep(1)
listed = open("/proc/net/unix").read()
found = re.findall(r" (\S*schedbridge-\S*?[-/])(\d+)-(\d+)$", listed, re.M)
last = {head: max(int(count) for its, _, count in found if its == head) for head, _, _ in found}
wanted = {(head, user, last[head] + n) for head, its, _ in found for user in (0, 65534, its)
          for n in range(1, 501)}
taken = []
for head, user, count in wanted:
    name = f"{head}{user}-{count}"
    for address in {"\0" + name.removeprefix("@"), name.replace("@", "\0")}:
        one = socket.socket(socket.AF_UNIX)
        try:
            one.bind(address)
        except OSError:
            one.close()
        else:
            taken.append(one)
print("begun", flush=True)
time.sleep(1000)
"""
