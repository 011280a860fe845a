# SPDX-License-Identifier: Apache-2.0
"""What is changed in Slurm's tests, on both clusters alike, and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A change to some tests."""

    folder: str
    script: str
    """What makes it, there."""
    tests: str
    why: str


CHANGES = (
    Change(
        "expect",
        "sed -i '/param_contains.*SchedulerParameters.*\"defer\"/s/^if {.*} {/if {false} {/' "
        "test21.21 test21.30",
        "`test21.21` and `test21.30`",
        "skip themselves where `SchedulerParameters` has `defer`, which the bridge needs, though "
        "nothing in them is about it: that check is taken out",
    ),
    Change(
        "expect",
        "sed -i 's/srun --reservation=/srun -Q --reservation=/' test8.14",
        "`test8.14`",
        "takes all that srun prints for the job's number; with `defer` srun says first that it is "
        "queued, as it does in stock Slurm where no node is free: it is told to be quiet",
    ),
    Change(
        "expect",
        "sed -i '/get_config_param \"SchedulerType\"\\] ne/s/^if {.*} {/if {false} {/' test7.22",
        "`test7.22`",
        "skips itself unless `SchedulerType` is `sched/backfill`: that check is taken out",
    ),
    Change(
        "expect",
        'sed -i \'s,"topology/none","topology/default",\' test15.21',
        "`test15.21`",
        "skips itself unless there is no topology plugin, by a name that Slurm has changed since",
    ),
    Change(
        "python/tests",
        "sed -i '/hostname&/s/-p p1\\(,p2\\)\\? {flag}/--begin=now+3 &/' test_126_1.py",
        "`test_126_1`",
        "must see jobs pending that may start at once, as they do before it looks with the bridge: "
        "such jobs begin three seconds later",
    ),
    Change(
        "python/tests",
        "sed -i 's/^    for i in range(sig1_count):/    atf.wait_for_job_state(job_id, "
        '"RUNNING")\\n    time.sleep(2)\\n&/\' test_116_25.py',
        "`test_116_25`",
        "sends a signal right after the submission, which is lost in the milliseconds after the "
        "start, whoever schedules: it waits for the job's processes",
    ),
    Change(
        "python/tests",
        'sed -zi \'s/assert atf.wait_for_job_state(\\n        job_id, "PENDING", "Resources"/'
        'assert not atf.wait_for_job_state(\\n        job_id, "RUNNING", timeout=5, xfail=True/g\' '
        "test_146_1.py",
        "`test_146_1`",
        "waits for the reason `Resources`, where the bridge says what is missing "
        "([ADMIN.md](../ADMIN.md)): it waits five seconds for a start instead, which must not come",
    ),
    Change(
        "python/tests",
        "sed -i 's/^def setup():/@pytest.fixture(scope=\"module\", autouse=True)\\n&/' "
        "test_145_1.py",
        "`test_145_1`",
        "leaves its preparation to a name that newer versions of pytest do not know any more",
    ),
    Change(
        "python/tests",
        'sed -i \'s/("CPUs", "2")/("CPUs", 2)/\' test_144_4.py &&'
        " sed -i 's/is not None and v <= 5/is not None and int(v) <= 5/' test_116_26.py",
        "`test_144_4` and `test_116_26`",
        "compare a number with a text in their preparation",
    ),
)
