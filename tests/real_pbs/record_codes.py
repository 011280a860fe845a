# SPDX-License-Identifier: Apache-2.0
"""Records what a real server answers to its scheduler: return codes, and the job's state after.

The file that it writes is the contract of `tests/pbs_double.py`.

Usage: python -m tests.real_pbs.world python -m tests.real_pbs.record_codes FILE
"""

import json
import signal
import sys
import time
from pathlib import Path

from bridge.pbs.ifl.library import Library, find_library
from tests.real_pbs.server import Server, wait_for

SETTLED_S = 2.0
Row = dict[str, object]


class Recorder:
    """A registered scheduler that does one thing after the other."""

    def __init__(self) -> None:
        self.server = Server()
        self.server.start()
        self.server.add_moms(3, "resources_available.ncpus=4,resources_available.mem=8gb")
        self.library = Library(find_library())
        self.primary, self.secondary = self.library.connect(""), self.library.connect("")
        self.rows: list[Row] = []
        self._note("register", self.library.register("default", self.primary, self.secondary))

    def _note(self, what: str, code: int, **more: object) -> None:
        self.rows.append({"case": what, "code": code, **more})
        print(self.rows[-1], flush=True)

    def run(self, what: str, where: str, *words: str, job: str = "", before: str = "") -> str:
        """Runs a job, and notes the code and what became of the job."""
        job = job or self.server.qsub(*words)
        if before:
            self.server.run(*before.split(), job)
        code = self.library.run(self.primary, job, where)
        time.sleep(SETTLED_S)
        self._note(what, code, state=self.server.state(job))
        return job

    def record(self) -> None:
        """All cases."""
        a, b = self.library.connect(""), self.library.connect("")
        self._note("second registration", self.library.register("default", a, b))
        one = "select=1:ncpus=1"
        running = self.run("fits", "(n1:ncpus=1)", "-l", one)
        self.run("running job", "(n1:ncpus=1)", job=running)
        self.run("overfull vnode", "(n1:ncpus=9)", "-l", one)
        self.run("more than asked", "(n2:ncpus=4)", "-l", one)
        self.run("unknown vnode", "(n99:ncpus=1)", "-l", one)
        self.run("unknown resource", "(n1:nothing=1)", "-l", one)
        self.run("held job", "(n2:ncpus=1)", "-h", "-l", one)
        array = self.server.qsub("-J", "1-2", "-l", one)
        self._note("array parent", self.library.run(self.primary, array, "(n2:ncpus=1)"))
        self.run("task of an array", "(n2:ncpus=1)", job=array.replace("[]", "[1]"))
        alone = ("-l", one, "-l", "place=excl")
        self.run("exclusive on a vnode in use", "(n1:ncpus=1)", *alone)
        self.run("exclusive", "(n3:ncpus=1)", *alone)
        self.run("vnode already exclusive", "(n3:ncpus=1)", "-l", one)
        self._note("unknown job", self.library.run(self.primary, "99999.pbssrv", "(n1:ncpus=1)"))
        waits = self.server.qsub("-l", one)
        self._note("release of a queued job",
                   self.library.release_nodes(self.primary, waits, "n2"))  # fmt: skip
        self._note("signal to an unknown job",
                   self.library.signal(self.primary, "99999.pbssrv", "resume"))  # fmt: skip
        self._note("delete of an unknown job",
                   self.library.delete(self.primary, "99999.pbssrv", ""))  # fmt: skip
        self.server.delete_all()
        self.server.qmgr("set node n2 state = offline")
        self.run("offline vnode", "(n2:ncpus=1)", "-l", one)
        self.server.signal_mom("n1", signal.SIGKILL)
        wait_for("a mom that is down", lambda: "down" in self.server.nodes()["n1"]["state"])
        self.run("mom down", "(n1:ncpus=1)", "-l", one)


def main(path: Path) -> None:
    """Records and writes."""
    recorder = Recorder()
    recorder.record()
    lines = ",\n".join(f"  {json.dumps(row)}" for row in recorder.rows)
    path.write_text(f'{{"server": "OpenPBS 23.06.06", "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
