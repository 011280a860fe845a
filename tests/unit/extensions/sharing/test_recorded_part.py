# SPDX-License-Identifier: Apache-2.0
"""The extension's part of a plan in recordings: its fields are among those of the plan."""

import numpy as np
import pytest

from bridge.extensions.sharing.check import SharingCheck
from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import having_shared, requeues, shared_of
from bridge.extensions.sharing.quotas import Quotas
from bridge.model.job_columns import objects
from bridge.model.parts import NO_PARTS
from bridge.model.plan import Plan
from bridge.recording.tables_text import Wrong, from_plain, to_plain

EMPTY = {"of": [], "at": []}
NO_DECISIONS = {
    "quotas": {"id": EMPTY, "milli_cpus_per_node": [], "weight": []}, "host_id": None,
    "requeues": {"id": EMPTY, "reasons": []}, "extensions": {"id": EMPTY, "total_s": []},
}  # fmt: skip
"""As every file from before the extension has them."""


def test_decisions_are_written_among_the_fields_of_the_plan_and_read_back():
    quotas = Quotas(objects(["g", "7"]), np.array([500, 0]), np.array([1, 50]))
    leaving, longer = requeues([("g", "too slow")]), Extensions.of({"h": 90, "k": 60})
    plan = having_shared(
        Plan.without_rows(5), quotas=quotas, host_id=objects(["", "h"]), requeues=leaving,
        extensions=longer,
    )  # fmt: skip
    data = to_plain(plan, Plan)
    assert data["quotas"]["milli_cpus_per_node"] == [500, 0]
    assert data["extensions"]["total_s"] == [90, 60]
    assert "sharing" not in data
    back = shared_of(from_plain(data, Plan))
    assert back.host_id.tolist() == ["", "h"]
    assert back.quotas.id.tolist() == ["g", "7"]
    assert back.requeues.reasons == ("too slow",)
    assert back.extensions.total_s.tolist() == [90, 60]


def test_a_file_without_decisions_has_no_part():
    data = to_plain(Plan.without_rows(5), Plan)
    assert not data.keys() & NO_DECISIONS.keys()
    assert from_plain(data | NO_DECISIONS, Plan).parts is NO_PARTS
    assert from_plain(data, Plan).parts is NO_PARTS


@pytest.mark.parametrize(
    ("key", "field"),
    [("quotas", "quotas.milli"), ("sharing", "sharing"), ("host_ids", "host_ids")],
)
def test_what_is_no_field_of_it_is_refused(key, field):
    data = to_plain(Plan.without_rows(5), Plan) | {key: {"milli": [1]}}
    with pytest.raises(Wrong, match=f"{field}: is an unknown field"):
        from_plain(data, Plan)


def test_columns_that_do_not_fit_are_named():
    uneven = Quotas(objects(["g", "k"]), np.array([-1, 5]), np.array([1]))
    odd = Extensions(objects(["h"]), np.array([10, 20]))
    plan = having_shared(
        Plan.without_rows(5), quotas=uneven, extensions=odd, host_id=objects(["h"])
    )
    assert list(SharingCheck().faults(None, plan)) == [
        ("host_id", "has 1 rows where 0 belong"),
        ("extensions.total_s", "has 2 rows where 1 belong"),
        ("quotas.milli_cpus_per_node", "has an impossible amount"),
        ("quotas.weight", "has 1 rows where 2 belong"),
    ]
