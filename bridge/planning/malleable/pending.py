# SPDX-License-Identifier: Apache-2.0
"""The rest of a decision, which follows when its shrinks are complete.

It is kept from cycle to cycle as numbers under keys (`bridge.model.learnt.Learnt`) and survives a
restart of the service.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from bridge.model.layers import Layers
from bridge.model.learnt import Learnt

_GROWS, _STARTS, _UNTIL = "grows ", "starts ", "until"


@dataclass(frozen=True)
class Pending:
    """Growths and starts that wait for shrinks.

    Attributes:
        widths: widths of running jobs that will grow, by id.
        jobs: ids of waiting jobs that will start before others.
        until_s: when it is abandoned, unless jobs are still adapting.
    """

    widths: Mapping[str, int] = field(default_factory=dict)
    jobs: frozenset[str] = frozenset()
    until_s: int = 0

    def __bool__(self) -> bool:
        return bool(self.widths or self.jobs)

    @staticmethod
    def of(learnt: Learnt) -> "Pending":
        """Reads it from the state."""
        known = learnt.known
        return Pending(
            {key.removeprefix(_GROWS): n[0] for key, n in known.items() if key.startswith(_GROWS)},
            frozenset(key.removeprefix(_STARTS) for key in known if key.startswith(_STARTS)),
            known.get(_UNTIL, [0])[0],
        )

    def learnt(self) -> Learnt:
        """Writes it for the state."""
        if not self:
            return Learnt()
        known = {_GROWS + job: [width] for job, width in self.widths.items()}
        known |= {_STARTS + job: [1] for job in sorted(self.jobs)}
        return Learnt(Layers(known | {_UNTIL: [self.until_s]}))

    def at(self, now_s: int) -> "Pending":
        """The part that remains at an instant."""
        return self if now_s < self.until_s else Pending()

    def without(self, started: Collection[str]) -> "Pending":
        """The part that remains after its growths and the starts of some jobs."""
        return replace(self, widths={}, jobs=self.jobs.difference(started))
