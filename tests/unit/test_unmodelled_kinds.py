# SPDX-License-Identifier: Apache-2.0
"""The kinds of requests that the service does not model, in the plugin and in its cluster test."""

from tests.integration.unmodelled_requests import REQUESTS, kinds


def test_every_kind_is_requested_on_a_cluster():
    assert len(kinds()) > 15
    assert kinds() == list(REQUESTS)
