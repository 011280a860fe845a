# SPDX-License-Identifier: Apache-2.0
"""The page of metrics is made and can be read, whatever names partitions and nodes have."""

import random

from prometheus_client.parser import text_string_to_metric_families

from bridge.service.telemetry import MAX_LABEL, Metrics

COUNTERS = (
    "schedbridge_start_error_seconds_count",
    "schedbridge_report_refusals_total",
    "schedbridge_power_refusals_total",
)
SIGNS = 'aé0 {}=,#"\\\n\r\t\x00\x1b\x85\u2028\ud800\udfff\U0001f600'
"""Halves of characters among them, and what ends values and lines."""


def odd_name(dice):
    length = dice.choice((0, 1, 3, 8, MAX_LABEL, 20 * MAX_LABEL))
    return "".join(dice.choices(dice.choice((SIGNS, "ab")), k=length))


def test_every_name_is_counted_in_a_page_that_can_be_read():
    """Of several names in a page; each is short, and on one line."""
    for seed in range(40):
        dice = random.Random(seed)
        names = ["batch", *(odd_name(dice) for _ in range(4)), "long"]
        metrics = Metrics("1", "easy")
        for name in names:
            metrics.started(name, 1)
            metrics.report_refused(name, "not placed")
            metrics.power_refused(name, "range")
        counts = dict.fromkeys(COUNTERS, 0.0)
        for family in text_string_to_metric_families(metrics.page().decode()):
            for sample in family.samples:
                counts[sample.name] = counts.get(sample.name, 0.0) + sample.value
                for value in sample.labels.values():
                    assert len(value) <= MAX_LABEL or "\\" in value, seed  # an escape is longer
        assert [counts[name] for name in COUNTERS] == [len(names)] * 3, seed
