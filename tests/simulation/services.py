# SPDX-License-Identifier: Apache-2.0
"""Real services on real sockets, for tests: in this process, or in one of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.service.config import parse
from bridge.service.serve import Service
from tests.unit.rpc.worlds import a_full, a_hello, a_job, a_request

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300
"""Only what hangs takes so long: tests run beside whatever else the machine does."""

SLOW = 120
"""Seconds that an answer may take on a machine that does much else; nothing is judged by it."""

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


@contextmanager
def a_home():
    """A directory with a short name: paths of sockets are."""
    home = Path(tempfile.mkdtemp(prefix="sb-", dir="/tmp"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home)


def a_config(home, **settings):
    """Configuration text (JSON is YAML) of a service that lives in a directory."""
    base = {
        "controller": {"socket": str(home / "c" / "s")},
        "operator": {"socket": str(home / "o" / "s")},
        "metrics": {"address": None},
        "memory": {"path": str(home / "memory.sqlite")},
        "policy": "slurm-like",
    }
    for section, value in settings.items():
        both = isinstance(value, dict) and isinstance(base.get(section, {}), dict)
        base[section] = {**base.get(section, {}), **value} if both else value
    return json.dumps(base)


def controller_of(home):
    return f"unix:{home}/c/s"


def operator_of(home):
    return f"unix:{home}/o/s"


@contextmanager
def a_service(home, launchers=None, **settings):
    """A service in this process."""
    service = Service(parse(a_config(home, **settings), "test"), launchers=launchers)
    service.start()
    try:
        yield service
    finally:
        service.stop(grace_s=5)


def command(*arguments):
    return [sys.executable, "-m", "bridge.cli.main", *map(str, arguments)]


def run(*arguments, **settings):
    """Runs `schedbridge ARGUMENTS` to its end."""
    settings.setdefault("env", ENVIRONMENT)
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        **settings,
    )


@contextmanager
def a_process(home, **settings):
    """`schedbridge serve` in a process of its own, ready."""
    file = home / "bridge.yaml"
    file.write_text(a_config(home, **settings))
    log = (home / "log").open("ab")
    process = subprocess.Popen(
        command("serve", "--config", file), stdout=log, stderr=log, env=ENVIRONMENT
    )
    try:
        wait_until_serving(process, controller_of(home), home / "log")
        wait_until_serving(process, operator_of(home), home / "log")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        log.close()


def health(address):
    """What the health service says at an address; None if nobody answers."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=30
            )
        except grpc.RpcError:
            return None
    return answer.status


def wait_until_serving(process, address, log, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        if health(address) == health_pb2.HealthCheckResponse.SERVING:
            return
        time.sleep(0.05)
    raise AssertionError(f"not ready after {patience_s} s: {log.read_text()}")


@contextmanager
def a_controller(home):
    """Its next call; each reports everything again."""
    with grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello(), timeout=SLOW, wait_for_ready=True)
        generation = 0

        def call(jobs=3):
            nonlocal generation
            generation += 1
            request = a_request(min_nodes=4, max_nodes=4, exclusive=True)
            many = [a_job(str(index + 1), request=request, name="work") for index in range(jobs)]
            reply = stub.Cycle(a_full(many, generation=generation), timeout=SLOW)
            assert not reply.need_full
            return reply

        call()
        yield call
