# SPDX-License-Identifier: Apache-2.0
"""A server for each file of tests, in a world of its own."""

import pytest

from tests.real_pbs.server import Server
from tests.real_pbs.service import Bridge


@pytest.fixture(scope="module")
def conf():
    """More lines of pbs.conf."""
    return ""


@pytest.fixture(scope="module")
def server(conf):
    started = Server(conf)
    started.start()
    started.add_moms(4, "resources_available.ncpus=4,resources_available.mem=8gb")
    return started


@pytest.fixture(scope="module")
def bridge(server):
    """Service and link, as root."""
    started = Bridge()
    started.start_service()
    started.start_link()
    yield started
    started.stop()


@pytest.fixture
def no_jobs(server, bridge):
    """Leaves no jobs behind."""
    yield
    server.delete_all()
