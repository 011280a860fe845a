# SPDX-License-Identifier: Apache-2.0
"""The files of sched_priv that pbs_sched reads its policy from, as one object.

The link reads the texts where it runs on the server's host; where there are none, the defaults of
`sched_config` hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo

from bridge.pbs.objects.calendar import ANY_TIME, Calendar, read_dedicated, read_holidays
from bridge.pbs.objects.fair_share import Member, read_members
from bridge.pbs.objects.sched_config import DEFAULTS, SchedConfig, read_sched_config

NAMES = ("sched_config", "holidays", "dedicated_time", "resource_group")


@dataclass(frozen=True)
class SchedFiles:
    """What the files say.

    Attributes:
        members: members of the tree of fair share.
        problems: one line for each setting that is not supported or understood.
    """

    config: SchedConfig = DEFAULTS
    calendar: Calendar = ANY_TIME
    members: Mapping[str, Member] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


NO_FILES = SchedFiles()


def read_sched_files(texts: Mapping[str, str], zone: tzinfo | None = None) -> SchedFiles:
    """Reads the files.

    Args:
        texts: by the names of `NAMES`; a file that is not there is left out.
        zone: the zone of times of day; None: this machine's.
    """
    config = read_sched_config(texts.get("sched_config"))
    holidays = read_holidays(texts.get("holidays"))
    dedicated, late = read_dedicated(texts.get("dedicated_time"), zone)
    members, odd = read_members(texts.get("resource_group"))
    return SchedFiles(
        config, Calendar(config, holidays, tuple(dedicated), zone), members,
        (*config.problems, *holidays.problems, *late, *odd),
    )  # fmt: skip
