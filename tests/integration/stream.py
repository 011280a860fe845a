# SPDX-License-Identifier: Apache-2.0
"""A stream of mixed short jobs, submitted at random gaps while something else goes wrong.

A loop on the login side submits, as a user's script would: where slurmctld does not answer it
tries again. Which jobs come when follows from the seed alone.

Kinds, and what each must keep:
    shared     1-4 CPUs of one node
    exclusive  1-3 whole nodes
    range      2-5 whole nodes, as many as there are
    array      three tasks, two at a time
    chained    not before the job submitted before it has ended
    capped     2 CPUs of an account that may use 4 at a time
    licensed   a licence of which there are few
"""

import random
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Thread
from types import TracebackType

from tests.integration.slurm import Cluster, Record

KINDS = {
    "shared": 10, "exclusive": 7, "range": 3, "array": 2, "chained": 3, "capped": 3, "licensed": 2,
}  # fmt: skip
ARRAY_TASKS, ARRAY_AT_ONCE = 3, 2
CAPPED_ACCOUNT, CAPPED_CPUS = "capped", 4
CPUS = 4
"""CPUs of each node."""

LOOP = """
submit() {  # NAME OPTIONS...: until Slurm takes it
    name=$1; shift
    for try in $(seq 120); do
        if id=$(sbatch --parsable -J "$name" -o /dev/null "$@" 2>/tmp/stream-$$.err); then
            last=${id%%;*}
            echo "$name $last $(date +%s.%N)"
            return
        fi
        grep -qiE 'contact|controller|socket|timed out|reset|transmit' /tmp/stream-$$.err || {
            echo "REFUSED $name $(tr '\\n' ' ' </tmp/stream-$$.err)"
            exit 1
        }
        sleep 0.5
    done
    echo "REFUSED $name no answer from slurmctld in a minute"
    exit 1
}
"""


@dataclass(frozen=True)
class Submitted:
    """One submission that Slurm acknowledged."""

    name: str
    kind: str
    id: str
    at_s: float
    after: str = ""

    @property
    def job_ids(self) -> list[str]:
        """The ids its records carry."""
        if self.kind != "array":
            return [self.id]
        return [f"{self.id}_{task}" for task in range(ARRAY_TASKS)]


def script(
    seed: int, count: int, licence: str, gap_s: float, longest_s: float, kinds: dict[str, int]
) -> str:
    """The login-side loop for a seed."""
    rng = random.Random(seed)
    lines = [LOOP]
    for number in range(count):
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        if number == 0 and kind == "chained":
            kind = "shared"
        options = ["-t", str(rng.randint(1, 3))]
        match kind:
            case "shared":
                options += ["-N1", f"-n{rng.randint(1, CPUS)}"]
            case "exclusive":
                options += [f"-N{rng.randint(1, 3)}", "--exclusive"]
            case "range":
                options += [f"-N2-{rng.randint(2, 5)}", "--exclusive"]
            case "array":
                options += ["-N1", "-n1", f"--array=0-{ARRAY_TASKS - 1}%{ARRAY_AT_ONCE}"]
            case "chained":
                options += ["-N1", "-n1", "--dependency=afterany:$last"]
            case "capped":
                options += ["-N1", "-n2", "-A", CAPPED_ACCOUNT]
            case "licensed":
                options += ["-N1", "-n1", "-L", licence]
        sleep_s = rng.choice((0.0, rng.uniform(0, longest_s)))
        quoted = " ".join(shlex.quote(o) if "$" not in o else f'"{o}"' for o in options)
        lines.append(f"sleep {rng.expovariate(1 / gap_s):.3f}")
        lines.append(f'submit s{number}-{kind} {quoted} --wrap "sleep {sleep_s:.2f}"')
    return "\n".join(lines)


class Stream:
    """Submits while the test goes on; `with` waits for the last submission."""

    def __init__(
        self, cluster: Cluster, seed: int, *, count: int = 50, gap_s: float = 0.25,
        longest_s: float = 4.0, without: str = "",
    ) -> None:  # fmt: skip
        self.cluster, self.count = cluster, count
        shown = cluster.run("scontrol", "show", "licenses", "-o")
        self.licences = int(shown.split("Total=")[1].split()[0])
        name = shown.split("LicenseName=")[1].split()[0]
        kinds = {kind: weight for kind, weight in KINDS.items() if kind != without}
        self.script = script(seed, count, f"{name}:1", gap_s, longest_s, kinds)
        self.submitted: list[Submitted] = []
        self.refused = ""
        self.began_s = time.time()
        print(f"stream of seed {seed}: again with SCHEDBRIDGE_SEED={seed}")

    def __enter__(self) -> "Stream":
        self._process = subprocess.Popen(
            [*self.cluster.login("user"), "bash", "-c", self.script],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._reader = Thread(target=self._read)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words = line.split()
            if len(words) == 3 and words[0].startswith("s"):
                name, job_id, at_s = words
                kind = name.partition("-")[2]
                after = self.submitted[-1].id if kind == "chained" else ""
                self.submitted.append(Submitted(name, kind, job_id, float(at_s), after))
            else:
                self.refused += line

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if error is not None:
            self._process.terminate()
        self._process.wait(180)
        self._reader.join(10)

    def reached(self, count: int) -> None:
        """Waits until so many jobs are submitted."""
        self.cluster.wait_for(
            f"{count} submissions", lambda: len(self.submitted) >= count or self.refused, 120
        )
        assert not self.refused, self.refused

    @property
    def job_ids(self) -> list[str]:
        return [job_id for one in self.submitted for job_id in one.job_ids]

    def finished(self, timeout_s: float = 180) -> None:
        """Waits until everything is submitted and the queue is empty again."""
        assert not self.refused, self.refused
        assert len(self.submitted) == self.count, f"{len(self.submitted)} of {self.count} submitted"
        self.cluster.wait_empty(timeout_s)

    def records(self, *, but: Iterable[str] = ()) -> list[Record]:
        """Everything that Slurm's accounting says about this stream, proven sound."""
        excused = set(but)
        wanted = [job_id for job_id in self.job_ids if job_id not in excused]
        records = self.cluster.assert_sound(wanted, cpus_per_node=CPUS, unjudged=excused)
        launches = self.cluster.launches(self.began_s)
        twice = {job_id for job_id, times in launches.items() if times > 1} - excused
        assert not twice, f"launched twice on nodes: {sorted(twice)}"
        assert len(launches) >= len(wanted), "the nodes' logs do not show all launches"
        by_id = {record.job_id: record for record in records}
        self._arrays(by_id)
        self._chains(by_id)
        self._capped(by_id)
        self._licensed(by_id)
        self._widths(by_id)
        return records

    def _of(self, by_id: dict[str, Record], kind: str) -> list[Record]:
        return [
            by_id[job_id]
            for one in self.submitted if one.kind == kind
            for job_id in one.job_ids if job_id in by_id
        ]  # fmt: skip

    def _arrays(self, by_id: dict[str, Record]) -> None:
        tasks: dict[str, list[Record]] = defaultdict(list)
        for record in self._of(by_id, "array"):
            tasks[record.job_id.partition("_")[0]].append(record)
        for array, records in tasks.items():
            maximum = most_at_once(records, lambda _: 1)
            assert maximum <= ARRAY_AT_ONCE, f"{maximum} tasks of array {array} ran at once"

    def _chains(self, by_id: dict[str, Record]) -> None:
        ends: dict[str, list[int]] = defaultdict(list)
        for record in by_id.values():
            ends[record.job_id.partition("_")[0]].append(record.end_s or 0)
        for one in self.submitted:
            if one.kind == "chained" and one.id in by_id and one.after in ends:
                start_s = by_id[one.id].start_s or 0
                assert start_s >= max(ends[one.after]), f"{one.name} did not wait for {one.after}"

    def _capped(self, by_id: dict[str, Record]) -> None:
        maximum = most_at_once(self._of(by_id, "capped"), lambda record: record.cpus)
        assert maximum <= CAPPED_CPUS, f"account {CAPPED_ACCOUNT} used {maximum} CPUs at once"

    def _licensed(self, by_id: dict[str, Record]) -> None:
        maximum = most_at_once(self._of(by_id, "licensed"), lambda _: 1)
        assert maximum <= self.licences, f"{maximum} of {self.licences} licences in use at once"

    def _widths(self, by_id: dict[str, Record]) -> None:
        for record in self._of(by_id, "range"):
            assert 2 <= len(record.nodes) <= 5, f"{record.job_id} got {record.nodes}"
        whole = self._of(by_id, "exclusive") + self._of(by_id, "range")
        for record in whole:
            assert record.cpus == CPUS * len(record.nodes), f"{record.job_id} shared its nodes"


def most_at_once(records: Iterable[Record], amount) -> int:  # type: ignore[no-untyped-def]
    """The most of something that these records ever held at one time."""
    changes = []
    for record in records:
        if record.start_s is not None and record.end_s is not None:
            changes += [(record.start_s, amount(record)), (record.end_s, -amount(record))]
    maximum = held = 0
    for _, change in sorted(changes):
        held += change
        maximum = max(maximum, held)
    return maximum


def starts_between(records: Iterable[Record], from_s: float, to_s: float) -> list[int]:
    """The instants at which jobs began to run in [from, to), sorted.

    Accounting keeps whole seconds: a start within the second of `from` counts.
    """
    return sorted(
        record.start_s
        for record in records
        if record.start_s is not None and int(from_s) <= record.start_s < to_s
    )
