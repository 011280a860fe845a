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
        "skip themselves if `SchedulerParameters` has `defer`, which the bridge needs; they do not "
        "depend on it, and the check is removed",
    ),
    Change(
        "expect",
        "sed -i 's/srun --reservation=/srun -Q --reservation=/' test8.14",
        "`test8.14`",
        "takes all output of srun as the job id; with `defer`, as in stock Slurm without a free "
        "node, srun first prints that the job is queued: `-Q` silences it",
    ),
    Change(
        "expect",
        "sed -i '/get_config_param \"SchedulerType\"\\] ne/s/^if {.*} {/if {false} {/' test7.22",
        "`test7.22`",
        "skips itself unless `SchedulerType` is `sched/backfill`; the check is removed",
    ),
    Change(
        "expect",
        'sed -i \'s,"topology/none","topology/default",\' test15.21',
        "`test15.21`",
        "checks for the absence of a topology plugin by an old name; it gets the current one",
    ),
    Change(
        "expect",
        "sed -i 's/\"slurm [$]number/\"slurm(-wlm)? $number/' test25.1",
        "`test25.1`",
        "expects the version to follow the word `slurm`, which is `slurm-wlm` in Debian",
    ),
    Change(
        "python/tests",
        "sed -i '/hostname&/s/-p p1\\(,p2\\)\\? {flag}/--begin=now+3 &/' test_126_1.py",
        "`test_126_1`",
        "expects jobs to be pending that the bridge starts before it looks: they begin three "
        "seconds later",
    ),
    Change(
        "python/tests",
        "sed -i 's/^    for i in range(sig1_count):/    atf.wait_for_job_state(job_id, "
        '"RUNNING")\\n    time.sleep(2)\\n&/\' test_116_25.py',
        "`test_116_25`",
        "sends a signal right after the submission, which is lost if the job has only just "
        "started: it first waits for the job's processes",
    ),
    Change(
        "python/tests",
        'sed -zi \'s/assert atf.wait_for_job_state(\\n        job_id, "PENDING", "Resources"/'
        'assert not atf.wait_for_job_state(\\n        job_id, "RUNNING", timeout=5, xfail=True/g\' '
        "test_146_1.py",
        "`test_146_1`",
        "waits for the reason `Resources`, where the bridge says what is missing "
        "([ADMIN.md](../ADMIN.md)): it checks instead that no start follows within five seconds",
    ),
    Change(
        "python/tests",
        "sed -i 's/^def setup():/@pytest.fixture(scope=\"module\", autouse=True)\\n&/' "
        "test_145_1.py",
        "`test_145_1`",
        "names its set-up function in a way that newer versions of pytest no longer recognise",
    ),
    Change(
        "python/tests",
        'sed -i \'s/("CPUs", "2")/("CPUs", 2)/\' test_144_4.py &&'
        " sed -i 's/is not None and v <= 5/is not None and int(v) <= 5/' test_116_26.py",
        "`test_144_4` and `test_116_26`",
        "compare a number with a string in their set-up",
    ),
)
