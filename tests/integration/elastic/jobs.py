# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs on a real cluster: compiled programs, a stand-in for the agent, orders to it."""

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.integration.slurm import ROOT, Cluster

LIBRARY = ROOT / "bridge" / "extensions" / "elastic" / "library"
EXAMPLES = ROOT / "examples" / "elastic"
HERE = Path(__file__).parent
COMPILERS = {"wheel": "/opt/mpich/bin/mpicc", "ompi": "mpicc.openmpi", "mpich": "mpicc.mpich"}
"""The MPICH of the Python package index; Debian's Open MPI and MPICH."""
FORTRAN = {"ompi": "mpifort.openmpi", "mpich": "mpifort.mpich"}
ALL = "examples/*.c tests/breaking.c"
SETTINGS = {
    "FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "OMPI_MCA_smsc": "^cma", "OMPI_MCA_btl_tcp_if_include": "eth0",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}  # fmt: skip
"""What these MPIs need in containers."""
HURRY = """task=${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
export HURRY=/home/user/elastic/hurry.${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}$task"""
"""Names the file that ends all pauses of a job's program (`hurry.c`)."""
SCRIPT = """#!/bin/bash
{settings}
{hurry}
export SCHEDBRIDGE_AGENT=/tmp/stand-in/agent.sock TMPDIR=/tmp
rm -rf /tmp/stand-in && mkdir /tmp/stand-in
{stand_in} &
timeout 300 schedbridge run {options} -- {program}
echo "exit $?"
kill %1
"""


def exports() -> str:
    """SETTINGS, as lines of a script."""
    return "\n".join(f"export {name}={value}" for name, value in SETTINGS.items())


class Elastic(Cluster):
    """A cluster whose nodes have MPIs, and the example programs for each of them."""

    def compile(self, compilers: Iterable[str] = tuple(COMPILERS), files: str = ALL) -> None:
        """Compiles library and programs into a home that all users may read.

        Args:
            compilers: names in COMPILERS.
            files: C programs, as a shell knows them.
        """
        self.root("chmod", "755", "/home/user")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, folder in (("library", LIBRARY), ("examples", EXAMPLES), ("tests", HERE)):
                tar.add(folder, name, filter=_plain)
        where = "rm -rf ~/elastic && mkdir ~/elastic && tar -x -C ~/elastic"
        done = subprocess.run(
            [*self.login("user"), "sh", "-c", where],
            input=packed.getvalue(), capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for name in compilers:
            compiler = COMPILERS[name]
            path = " -Wl,-rpath,/opt/mpich/lib" if name == "wheel" else ""
            self.run("sh", "-ec", f"""cd ~/elastic
                make -s -f library/Makefile MPICC={compiler} OUT=$PWD/{name}
                {compiler} -O2 -Wall -Wextra -Werror -c -o {name}/hurry.o tests/hurry.c
                for file in {files}; do
                    program=$(basename $file .c)
                    {compiler} -O2 -Wall -Wextra -Werror -Ilibrary -o {name}/$program $file \
                        {name}/hurry.o -Wl,--wrap=usleep {name}/libbridge_elastic.a{path} -lm
                done""", timeout_s=300)  # fmt: skip
        for name in FORTRAN.keys() & set(compilers):
            self.run("sh", "-ec", f"""cd ~/elastic/{name}
                {FORTRAN[name]} -O2 -o heat1d ../library/bridge_elastic.f90 ../examples/heat1d.f90 \
                    hurry.o -Wl,--wrap=usleep libbridge_elastic.a""", timeout_s=300)  # fmt: skip

    def start(self, program: str, *options: str, tasks: int = 1, agent: bool = True) -> "Job":
        """Submits a job of one node that runs a program."""
        stand_in = f"/opt/schedbridge/bin/python elastic/tests/stand_in.py /tmp/stand-in {tasks}"
        text = SCRIPT.format(
            settings=exports(), hurry=HURRY,
            stand_in=stand_in if agent else "sleep 300", options=" ".join(options), program=program,
        )  # fmt: skip
        job_id = self.run(
            "sbatch", "--parsable", "-N1", "-w", "n1", f"--ntasks-per-node={tasks}", "-t", "10",
            "-o", "elastic/%j.out", stdin=text,
        )  # fmt: skip
        job = Job(self, job_id)
        if agent:
            assert job.order(do="wait"), job.output()
        return job

    def hurry(self, job_id: str) -> None:
        """A job's program no longer pauses."""
        self.root("touch", f"/home/user/elastic/hurry.{job_id}")

    def rigid(self, program: str) -> str:
        """The last line of a program that runs alone on one node, under plain srun."""
        out = self.run(
            "env", *(f"{name}={value}" for name, value in SETTINGS.items()),
            "srun", "-Q", "-N1", "-n1", "--mpi=pmi2", *program.split(),
        )  # fmt: skip
        return out.splitlines()[-1]


class Job:
    """One malleable job."""

    def __init__(self, cluster: Elastic, job_id: str) -> None:
        self.cluster, self.job_id, self.count = cluster, job_id, 0

    def order(self, **what: object) -> object:
        """Gives the stand-in an order, and returns its answer."""
        code = """
import json, socket, sys, time
until = time.monotonic() + 60
while True:
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.connect("/tmp/stand-in/orders.sock")
        break
    except OSError:
        if time.monotonic() > until: raise
        time.sleep(0.1)
file = stream.makefile("rw")
file.write(sys.argv[1] + chr(10)); file.flush()
print(file.readline())
"""
        said = self.cluster.inside("n1", "python3", "-c", code, json.dumps(what), user="user")
        return json.loads(said)

    def change(self, do: str, *nodes: str, within_s: float = 30.0, **more: object) -> dict:
        """Grows or shrinks by nodes; returns the result."""
        self.count += 1
        key = "add" if do == "grow" else "remove"
        got = self.order(do=do, id=str(self.count), within_s=within_s, **{key: nodes}, **more)
        assert isinstance(got, dict), got
        assert "error" not in got, got
        return got

    def series(self) -> list[dict]:
        """1-2-4-2-1 nodes, each change done, and the nodes held as they should be."""
        made = []
        for do, nodes, held in (
            ("grow", ["n2"], {"n1", "n2"}),
            ("grow", ["n3", "n4"], {"n1", "n2", "n3", "n4"}),
            ("shrink", ["n2", "n4"], {"n1", "n3"}),
            ("shrink", ["n3"], {"n1"}),
        ):
            got = self.change(do, *nodes)
            assert got["outcome"] == "done", (got, self.output())
            assert set(got["held"]) == set(got["nodes"]) == held, (got, self.output())
            made.append(got)
        return made

    def connected(self) -> "Job":
        """Waits until the program itself has introduced itself: one without MPI may do so late."""
        written = f"grep -q '\"connected\": true' /tmp/schedbridge-{self.job_id}-*/state.json"
        self.cluster.inside(
            "n1",
            "sh",
            "-c",
            f"for try in $(seq 600); do {written} && exit; sleep 0.1; done; exit 1",
        )
        return self

    def kill_launcher_at(self, stage: str) -> None:
        """Has the launcher killed as soon as its state file says that it is at this stage."""
        loop = f"""cd /tmp/schedbridge-{self.job_id}-* || exit 1
            for try in $(seq 3000); do
                if grep -q '"stage": "{stage}"' state.json; then
                    kill -9 $(cat launcher.pid); echo {stage} >>/tmp/stand-in/killed; exit
                fi
                sleep 0.002
            done"""
        subprocess.Popen(
            ["docker", "exec", "-d", "-u", "user", f"{self.cluster.name}-n1", "sh", "-c", loop]
        ).wait()

    def killed(self) -> list[str]:
        """The stages at which the launcher was killed."""
        return self.cluster.inside("n1", "cat", "/tmp/stand-in/killed").split()

    def output(self) -> str:
        """What the job has written so far."""
        return self.cluster.process("cat", f"elastic/{self.job_id}.out").stdout

    def end(self, timeout_s: float = 120) -> str:
        """Waits for the end, which nothing delays any more, and returns all that the job wrote."""
        self.cluster.hurry(self.job_id)
        gone = (
            f'[ -z "$(squeue -h -t all -j {self.job_id} -o %t | grep -v "CD\\|F\\|NF\\|CA\\|TO")" ]'
        )
        self.cluster.wait_for(
            f"job {self.job_id} ended: {self.output()}",
            lambda: self.cluster.process("sh", "-c", gone).returncode == 0, timeout_s,
        )  # fmt: skip
        return self.output()

    def lines(self, program: str) -> list[str]:
        """What the program itself has written."""
        return re.findall(rf"^{program}: .*$", self.output(), re.MULTILINE)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry
