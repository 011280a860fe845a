# SPDX-License-Identifier: Apache-2.0
"""For the tests of the memory's file."""

import pytest

from bridge.state import memory_file
from bridge.state import store as store_module


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.sqlite"


@pytest.fixture(autouse=True)
def quick(monkeypatch, caplog):
    """Failures are tried again soon."""
    caplog.set_level("INFO")
    monkeypatch.setattr(memory_file, "BUSY_S", 0.05)
    monkeypatch.setattr(store_module, "RETRY_S", (0.02, 0.1))
    monkeypatch.setattr(store_module, "AGAIN_S", 0.05)
    monkeypatch.setattr(store_module, "LINGER_S", 0.01)
    monkeypatch.setattr(store_module, "SAVE_EVERY_S", 0.0)
