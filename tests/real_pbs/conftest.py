# SPDX-License-Identifier: Apache-2.0
"""A server for each file of tests, in a world of its own."""

import pytest

from tests.real_pbs.server import Server


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
