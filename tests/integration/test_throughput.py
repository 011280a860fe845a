# SPDX-License-Identifier: Apache-2.0
"""Two thousand short jobs on 64 nodes: all run, each once, no node oversubscribed."""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.integration.slurm import KEEP, Cluster, oversubscribed

NODES, CPUS = 64, 4
ARRAY, SINGLE = 1000, 1000

ONE_BY_ONE = f"""
for n in $(seq {SINGLE}); do
    sbatch --parsable -n1 -t1 -o /dev/null --wrap "$RUN" || exit 1
done
"""


@pytest.fixture
def wide() -> Iterator[Cluster]:
    """A cluster of its own, all nodes packed into few containers; a new one for every try."""
    name = os.environ.get("SCHEDBRIDGE_TEST_CLUSTER", "sbtest") + "wide"
    cluster = Cluster(name, "--nodes", str(NODES), "--cpus", str(CPUS), "--accounting")
    cluster.up()
    yield cluster
    if not KEEP:
        cluster.down()


def test_two_thousand_short_jobs(wide: Cluster) -> None:
    array = wide.sbatch(f"--array=0-{ARRAY - 1}", "-n1", "-t1", run="true")
    singles = wide.run("env", "RUN=true", "bash", "-c", ONE_BY_ONE, timeout_s=300).split()
    assert len(set(singles)) == SINGLE
    wide.wait_empty(300)
    expected = {f"{array}_{task}" for task in range(ARRAY)} | set(singles)
    records = [r for r in wide.wait_records(expected, timeout_s=120) if r.job_id in expected]
    times = Counter(record.job_id for record in records)
    assert set(times) == expected
    assert {job: n for job, n in times.items() if n > 1} == {}
    unfinished = {r.raw_id: (r.job_id, r.state) for r in records if r.state != "COMPLETED"}
    purged = wide.purged()
    assert {job: what for job, what in unfinished.items() if job not in purged} == {}
    assert len(unfinished) <= (ARRAY + SINGLE) // 100
    assert {r.job_id: r.restarts for r in records if r.restarts} == {}
    launches = wide.launches()
    assert len(launches) == ARRAY + SINGLE
    assert set(launches.values()) == {1}
    overload = oversubscribed(records, CPUS)
    assert not overload, overload
    began = min(record.submit_s for record in records)
    ended = max(record.end_s or 0 for record in records)
    print(f"2,000 jobs in {ended - began} s")
