# SPDX-License-Identifier: Apache-2.0
"""The resources that a server defines: type, and where they are counted.

Rules
    1. `type` and `flag` are numbers on the batch interface and words in qmgr; both are read.
    2. A resource with the flag `h` belongs to vnodes; any other one to the server and its queues.
    3. Numbers and sizes are consumed by jobs, as for pbs_sched; strings and booleans are matched.
    4. A resource that the line `resources:` of sched_config leaves out is not compared; booleans
       always are.
    5. Resources that are limits of a process or shape a job (`walltime`, `cput`, `place`, ...) are
       not counted.

Source: OpenPBS 23.06, pbs_resources(7), qmgr(8).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bridge.pbs.objects.sched_config import DEFAULTS, SchedConfig
from bridge.pbs.objects.values import Kind
from bridge.pbs.tables import Objects, text

HOST_FLAG = 0x20000
_BY_NUMBER = {
    1: Kind.LONG, 3: Kind.STRING, 4: Kind.STRINGS, 5: Kind.SIZE, 9: Kind.LONG, 10: Kind.LONG,
    11: Kind.BOOLEAN, 14: Kind.FLOAT,
}  # fmt: skip
_BY_WORD = {kind.value: kind for kind in Kind}
_BUILT_IN = {
    "ncpus": (Kind.LONG, True), "mem": (Kind.SIZE, True), "vmem": (Kind.SIZE, True),
    "ngpus": (Kind.LONG, True), "naccelerators": (Kind.LONG, True),
    "accelerator_memory": (Kind.SIZE, True), "arch": (Kind.STRING, True),
    "host": (Kind.STRING, True), "vnode": (Kind.STRINGS, True), "Qlist": (Kind.STRINGS, True),
}  # fmt: skip
NOT_COUNTED = frozenset((
    "walltime", "min_walltime", "max_walltime", "soft_walltime", "cput", "pcput", "pmem", "pvmem",
    "nice", "file", "nodect", "nodes", "neednodes", "place", "select", "mpiprocs", "ompthreads",
    "software", "preempt_targets", "start_time", "exec_vnode", "mpparch", "nchunk", "eoe",
))  # fmt: skip
"""Shape a job, or limit its processes."""


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource.

    Attributes:
        on_vnodes: it is counted, or matched, on vnodes; otherwise at the server and the queue.
        compared: what jobs ask for is compared with what there is; otherwise any vnode will do.
        dynamic: a program states how much there is, which is not run: jobs that ask for it wait.
    """

    name: str
    kind: Kind
    on_vnodes: bool
    compared: bool = True
    dynamic: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether what jobs hold of it is counted on vnodes.

        Of one that is not compared, jobs may hold more than there is.
        """
        return self.on_vnodes and self.compared


def read_definitions(
    resources: Objects, config: SchedConfig = DEFAULTS
) -> Mapping[str, ResourceDefinition]:
    """Returns the resources by name; those of unknown types are left out."""
    found = {name: ResourceDefinition(name, *known) for name, known in _BUILT_IN.items()}
    for name, attributes in resources.items():
        kind = _kind(text(attributes, "type"))
        if kind is not None and name not in NOT_COUNTED and name not in _BUILT_IN:
            found[name] = ResourceDefinition(name, kind, _on_vnodes(text(attributes, "flag")))
    return {
        name: replace(
            known,
            compared=known.kind is Kind.BOOLEAN or config.compares(name),
            dynamic=name in config.dynamic,
        )
        for name, known in found.items()
    }


def _kind(word: str) -> Kind | None:
    return _BY_NUMBER.get(int(word)) if word.isdecimal() else _BY_WORD.get(word.strip().lower())


def _on_vnodes(flag: str) -> bool:
    if flag.isdecimal():
        return bool(int(flag) & HOST_FLAG)
    return "h" in flag
