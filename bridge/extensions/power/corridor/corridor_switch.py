# SPDX-License-Identifier: Apache-2.0
"""Keeps the corridor of power: its entries, and their resolution for every cycle.

Rules
    1. A change is in force from the next cycle on, survives restarts, and is logged in one line:
       who, from where, what, and the command that undoes it.
    2. Entries of a memory file that is opened late lie below those entered meanwhile.
    3. Where the site's rules do not bound power (`planning.power`), entries are refused.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_entries import CalendarEntry, OperatorEntry
from bridge.extensions.power.corridor.entry_log import Author, EntryLog, Wish
from bridge.extensions.power.corridor.resolve import Entries, corridor_at
from bridge.extensions.power.corridor.sentences import bounds_text, span_text
from bridge.extensions.power.corridor.sites import ResolvedCorridor
from bridge.extensions.power.rules import Corridor, power_of
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch

_log = logging.getLogger(__name__)

NOT_BOUNDED = "power is not bounded here: configure planning.power first"


_LIVE_S = 3600
"""A controller whose clock differs by more is a simulation's."""


def clock_of(cycles: Callable[[], Cycles | None]) -> Callable[[], int]:
    """This machine's clock, or that of the controller's last report in simulations."""

    def now_s() -> int:
        wall_s, last = int(time.time()), cycles()
        if last is None or last.published is None:
            return wall_s
        there_s = last.published.snapshot.now_s
        return wall_s if abs(wall_s - there_s) < _LIVE_S else there_s

    return now_s


@dataclass(frozen=True)
class EntryStore:
    """The storage of entries.

    Attributes:
        late: returns newly found entries once; None: there are none.
        keep: writes entries.
        problem: why they cannot be stored at present; empty: they can.
    """

    late: Callable[[], str | None] = lambda: None
    keep: Callable[[str], None] = lambda _text: None
    problem: Callable[[], str] = lambda: ""


class CorridorSwitch:
    """The corridor, from the next cycle on; thread-safe."""

    def __init__(
        self,
        switch: PolicySwitch,
        kept: EntryStore,
        *,
        calendar: Sequence[CalendarEntry] = (),
        now_s: Callable[[], int],
    ) -> None:
        """Starts with the stored entries.

        Args:
            switch: puts corridors in force.
            now_s: the clock of the controller, or of this machine before it has called.
        """
        self._switch = switch
        self._kept = kept
        self._calendar = tuple(calendar)
        self._now_s = now_s
        self._lock = threading.RLock()
        self._entry_log = EntryLog()
        self._changes = 0
        self._in_force: tuple[int, int, object] | None = None
        self._problems: dict[str, str] = {}
        self._recall()

    @property
    def bounded(self) -> bool:
        """Whether the site's rules bound power."""
        return power_of(self._switch.site) is not None

    @property
    def now_s(self) -> int:
        """The instant from which changes count."""
        return self._now_s()

    def entries(self) -> Entries:
        site = self._switch.site
        with self._lock:
            self._recall()
            return Entries(
                self._calendar, self._entry_log.entries, site.rules.timezone, site.cron_s
            )

    def entry_log(self) -> EntryLog:
        with self._lock:
            self._recall()
            return self._entry_log

    def corridor(self) -> Corridor:
        """The present corridor: the calendar and all entries resolved."""
        return corridor_at(self.entries(), self.now_s)

    def problems(self) -> tuple[str, ...]:
        """Problems with sources or storage of entries, in sentences."""
        with self._lock:
            found = tuple(text for text in self._problems.values() if text)
        problem = self._kept.problem()
        return (*found, f"entries are not kept over a restart: {problem}") if problem else found

    def report(self, where: str, problem: str) -> None:
        """Records a problem; empty: it is resolved."""
        with self._lock:
            self._problems[where] = problem

    def plan_with(self, calendar: Sequence[CalendarEntry]) -> None:
        """Replaces the calendar after the configuration was read again."""
        with self._lock:
            self._calendar = tuple(calendar)
            self._changes += 1

    def bear(self, now_s: int) -> None:
        """Puts the corridor of an instant in force; before a cycle, under its lock."""
        if not self.bounded:
            return
        with self._lock:
            entries = self.entries()
            site = self._switch.site
            state = (now_s // 86_400, self._changes, (site.rules.timezone, site.cron_s))
            if state == self._in_force:
                return
            corridor = corridor_at(entries, now_s)
            self._in_force = state
        self._switch.resolve(ResolvedCorridor(corridor))

    def enter(
        self, wishes: Sequence[Wish], author: Author, group: str = ""
    ) -> tuple[OperatorEntry, ...]:
        """Enters bounds; those of one group replace what it had before.

        Returns: The new entries; none if the group has the same bounds as before.

        Raises:
            ConfigError: they are invalid, there are too many, or power is not bounded.
        """
        if not self.bounded:
            raise ConfigError("power corridor", NOT_BOUNDED)
        with self._lock:
            self._recall()
            before = self._entry_log
            entry_log, added = before.add(wishes, author, self.now_s, group)
            if entry_log is before:
                return added
            self._take(entry_log)
        standing = {entry.id for entry in entry_log.entries if not entry.removed_s}
        for entry in before.entries:
            if not entry.removed_s and entry.id not in standing and group:
                _log.info("power corridor: %s withdraws entry %d", author, entry.id)
        for entry in added:
            _log.info(
                "power corridor: %s enters entry %d: %s, %s%s; undo it with"
                " 'schedbridge power corridor --undo %d'",
                author, entry.id, bounds_text(entry.lower_w, entry.upper_w),
                span_text(entry.start_s, entry.end_s), f" ({entry.reason})" if entry.reason else "",
                entry.id,
            )  # fmt: skip
        return added

    def remove(self, number: int, author: Author) -> OperatorEntry:
        """Removes an entry; 0: the most recently entered one.

        Raises:
            ConfigError: there is none.
        """
        with self._lock:
            self._recall()
            entry_log, gone = self._entry_log.remove(number, author, self.now_s)
            self._take(entry_log)
        _log.info(
            "power corridor: %s removes entry %d (%s, of %s); undo it with"
            " 'schedbridge power corridor --restore %d'",
            author, gone.id, bounds_text(gone.lower_w, gone.upper_w), gone.author, gone.id,
        )  # fmt: skip
        return gone

    def restore(self, number: int, author: Author) -> OperatorEntry:
        """Puts a removed entry in force again.

        Raises:
            ConfigError: it cannot be, or power is not bounded.
        """
        if not self.bounded:
            raise ConfigError("power corridor", NOT_BOUNDED)
        with self._lock:
            self._recall()
            entry_log, back = self._entry_log.restore(number, author, self.now_s)
            self._take(entry_log)
        _log.info(
            "power corridor: %s restores entry %d (%s, of %s); undo it with"
            " 'schedbridge power corridor --undo %d'",
            author, back.id, bounds_text(back.lower_w, back.upper_w), back.author, back.id,
        )  # fmt: skip
        return back

    def _take(self, entry_log: EntryLog) -> None:
        """Stores a new log, which later views and the next cycle use."""
        self._entry_log = entry_log
        self._changes += 1
        self._kept.keep(entry_log.text())
        self._switch.changes += 1

    def settle(self) -> None:
        """Merges and stores the entries; called before the memory is closed."""
        with self._lock:
            self._recall()

    def _recall(self) -> None:
        """Merges the entries of a file that has just been opened (rule 2)."""
        text = self._kept.late()
        if text is None:
            return
        try:
            found = EntryLog.read(text)
        except ValueError as error:
            _log.error("power corridor: the stored entries cannot be read: %s", error)
            return
        mine = [entry.id for entry in self._entry_log.entries]
        self._entry_log = self._entry_log.after(found)
        self._changes += 1
        self._switch.changes += 1
        if mine:
            now = [entry.id for entry in self._entry_log.entries][-len(mine) :]
            _log.warning("power corridor: entries %s are now %s: older ones were found", mine, now)
            self._kept.keep(self._entry_log.text())
