# SPDX-License-Identifier: Apache-2.0
"""The entries of operators and programs: a value, with a bounded number of entries.

Rules
    1. Ids ascend and are never used again.
    2. A removed entry can be restored, with its id and therefore its place, until it is forgotten.
    3. Entries that ended or were removed are forgotten after `KEEP_S`, and earlier if there are
       more than `MAX_KEPT`, oldest first. More than `MAX_STANDING` at a time are refused.
    4. Entries of one group are added and removed together: a new group of that name replaces the
       old one, and an equal one changes nothing.
    5. Of a stored log, an entry that cannot be read, or whose id does not ascend, is left out: the
       others are in force.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_entries import MAX_W, OperatorEntry
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.left_out import LeftOut
from bridge.units import DAY_S, NEVER

KEEP_S = 30 * DAY_S
MAX_STANDING = 500
MAX_KEPT = 1000
MAX_TEXT = 300
"""Characters of a reason or a name."""

_KEY = "power corridor"


@dataclass(frozen=True)
class Wish:
    """Requested bounds; absolute instants.

    Attributes:
        end_s: end; `NEVER`: until it is removed.
        lower_w, upper_w: as in `OperatorEntry`.
        reason: for display.
    """

    start_s: int
    end_s: int = NEVER
    lower_w: int | None = None
    upper_w: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Author:
    """The author of a change of the corridor.

    Attributes:
        name: the name of a user, or of a program.
    """

    name: str
    origin: str

    def __str__(self) -> str:
        return f"{self.name} ({self.origin})"


@dataclass(frozen=True)
class EntryLog:
    """The entries, and the next id."""

    entries: tuple[OperatorEntry, ...] = ()
    next_id: int = 1

    def add(
        self, wishes: Sequence[Wish], author: Author, now_s: int, group: str = ""
    ) -> tuple["EntryLog", tuple[OperatorEntry, ...]]:
        """Enters bounds; those of one group replace what it had before (rule 4).

        Returns:
            The new log, and the entries that are new.

        Raises:
            ConfigError: there are too many, or they contradict themselves.
        """
        before = self.of_group(group, now_s) if group else ()
        wishes = [wish for wish in wishes if wish.end_s > now_s]
        if group and [_said(entry) for entry in before] == [_said(wish) for wish in wishes]:
            return self, ()
        entry_log = self
        for entry in before:
            entry_log = entry_log.remove(entry.id, author, now_s)[0]
        for wish in wishes:
            check_bounds(wish)
        standing = sum(entry.stands_at(now_s) for entry in entry_log.entries)
        if standing + len(wishes) > MAX_STANDING:
            raise ConfigError(_KEY, f"has more than {MAX_STANDING} entries: remove some (--undo)")
        added = tuple(
            OperatorEntry(
                id=entry_log.next_id + at,
                author=author.name[:MAX_TEXT],
                origin=author.origin[:MAX_TEXT],
                entered_s=now_s,
                start_s=wish.start_s,
                end_s=wish.end_s,
                lower_w=wish.lower_w,
                upper_w=wish.upper_w,
                reason=wish.reason[:MAX_TEXT],
                group=group,
            )
            for at, wish in enumerate(wishes)
        )
        entries = (*entry_log.entries, *added)
        return EntryLog(entries, entry_log.next_id + len(added)).pruned(now_s), added

    def remove(self, number: int, author: Author, now_s: int) -> tuple["EntryLog", OperatorEntry]:
        """Removes an entry; 0: the most recently entered one that is not removed.

        Raises:
            ConfigError: there is none, or it is removed or has ended.
        """
        if not number:
            standing = [entry.id for entry in self.entries if entry.stands_at(now_s)]
            if not standing:
                raise ConfigError(_KEY, "has no entry that could be removed")
            number = standing[-1]
        entry = self.entry(number)
        if entry.removed_s:
            raise ConfigError(_KEY, f"entry {number} is removed already, by {entry.removed_by}")
        if not entry.stands_at(now_s):
            raise ConfigError(_KEY, f"entry {number} is over: it bounds nothing any more")
        gone = replace(entry, removed_s=max(now_s, 1), removed_by=str(author)[:MAX_TEXT])
        return self._with(gone), gone

    def restore(self, number: int, author: Author, now_s: int) -> tuple["EntryLog", OperatorEntry]:
        """Puts a removed entry in force again, at its own place.

        Raises:
            ConfigError: there is none, or it is not removed, or has ended.
        """
        del author
        entry = self.entry(number)
        if not entry.removed_s:
            raise ConfigError(_KEY, f"entry {number} is not removed")
        if entry.end_s <= now_s:
            raise ConfigError(_KEY, f"entry {number} is over: enter its bounds again")
        back = replace(entry, removed_s=0, removed_by="")
        return self._with(back), back

    def entry(self, number: int) -> OperatorEntry:
        """The entry with a number.

        Raises:
            ConfigError: there is none.
        """
        for entry in self.entries:
            if entry.id == number:
                return entry
        raise ConfigError(_KEY, f"has no entry {number}; 'schedbridge power corridor --list'")

    def of_group(self, group: str, now_s: int) -> tuple[OperatorEntry, ...]:
        """The entries of a group that are not removed."""
        return tuple(
            entry for entry in self.entries if entry.group == group and entry.stands_at(now_s)
        )

    def pruned(self, now_s: int) -> "EntryLog":
        """The log without forgotten entries (rule 3)."""
        kept = [
            entry
            for entry in self.entries
            if entry.stands_at(now_s) or now_s - (entry.removed_s or entry.end_s) < KEEP_S
        ]
        surplus = len(kept) - MAX_KEPT
        for entry in [entry for entry in kept if not entry.stands_at(now_s)][: max(surplus, 0)]:
            kept.remove(entry)
        return self if len(kept) == len(self.entries) else replace(self, entries=tuple(kept))

    def after(self, earlier: "EntryLog") -> "EntryLog":
        """This log on top of an older one that was found later; clashing ids are renewed."""
        if not earlier.entries:
            return replace(self, next_id=max(self.next_id, earlier.next_id))
        shift = max(earlier.next_id - min((entry.id for entry in self.entries), default=1), 0)
        mine = tuple(replace(entry, id=entry.id + shift) for entry in self.entries)
        groups = {entry.group for entry in mine if entry.group}
        below = tuple(entry for entry in earlier.entries if entry.group not in groups)
        return EntryLog((*below, *mine), max(self.next_id + shift, earlier.next_id))

    def text(self) -> str:
        """The same as text that `read` takes."""
        entries = [asdict(entry) for entry in self.entries]
        return json.dumps({"next_id": self.next_id, "entries": entries})

    @staticmethod
    def read(text: str) -> "EntryLog":
        """Reads what `text` has written.

        Raises:
            ValueError: it is something else.
        """
        try:
            value = json.loads(text)
            stored, next_id = [*value["entries"]], int(value["next_id"])
        except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"is not a list of entries: {error}") from error
        if not 0 < next_id < 2**53:
            raise ValueError("its next id is not possible")
        if len(stored) > MAX_KEPT + MAX_STANDING:
            raise ValueError("it has too many entries")
        left_out = LeftOut("stored entry of the power corridor")
        entries: list[OperatorEntry] = []
        for position, each in enumerate(stored, 1):
            ids = entries[-1].id if entries else 0, next_id
            if (entry := left_out.unless(f"{position}", _entry, each, *ids)) is not None:
                entries.append(entry)
        return EntryLog(tuple(entries), next_id)

    def _with(self, changed: OperatorEntry) -> "EntryLog":
        entries = tuple(changed if each.id == changed.id else each for each in self.entries)
        return replace(self, entries=entries)


def check_bounds(wish: Wish) -> None:
    """Raises unless requested bounds are valid.

    Raises:
        ConfigError: it names no bound, bounds that cross, or ends before it begins.
    """
    if wish.lower_w is None and wish.upper_w is None:
        raise ConfigError(_KEY, "name a lower bound, an upper bound or both")
    for name, amount in (("lower", wish.lower_w), ("upper", wish.upper_w)):
        no_bound = name == "upper" and amount == NO_UPPER_W
        if amount is not None and not no_bound and not 0 <= amount <= MAX_W:
            raise ConfigError(_KEY, f"{name} must be from 0 to {MAX_W} W, not {amount}")
    if wish.lower_w is not None and wish.upper_w is not None and wish.lower_w > wish.upper_w:
        raise ConfigError(
            _KEY, f"has its lower bound ({wish.lower_w} W) above the upper one ({wish.upper_w} W)"
        )
    if wish.end_s <= wish.start_s:
        raise ConfigError(_KEY, "ends before it begins: give a later --until")


def _said(entry: OperatorEntry | Wish) -> tuple[object, ...]:
    return entry.start_s, entry.end_s, entry.lower_w, entry.upper_w, entry.reason[:MAX_TEXT]


def _entry(value: dict[str, Any], before_id: int, next_id: int) -> OperatorEntry:
    """An entry from plain values; every field has its type and range, the id is between two."""
    entry = OperatorEntry(**value)
    numbers = (entry.id, entry.entered_s, entry.start_s, entry.end_s, entry.removed_s)
    bounds = [each for each in (entry.lower_w, entry.upper_w) if each is not None]
    texts = (entry.author, entry.origin, entry.reason, entry.group, entry.removed_by)
    if not all(type(each) is int and 0 <= each <= NEVER for each in (*numbers, *bounds)):
        raise ValueError("an entry has an invalid number")
    if not all(isinstance(each, str) and len(each) <= 2 * MAX_TEXT for each in texts):
        raise ValueError("an entry has an invalid text")
    if not before_id < entry.id < next_id:
        raise ValueError("its id is not in order")
    return entry
