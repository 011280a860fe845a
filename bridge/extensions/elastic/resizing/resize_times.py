# SPDX-License-Identifier: Apache-2.0
"""The times at which running jobs changed their widths, as needed for limits on resizes.

Rules
    1. For a user, the instants within the last hour are kept (`planning.resizes`: `per_hour`), the
       last `MAX_OF_USER`; for a running job, the last one (`apart`).
    2. They are an immutable mapping, which the memory file keeps with the knowledge of predictors.
       Its keys are a letter followed by a user name or a job id.
    3. Instants in the future are dropped. They come from a file written while the clock was ahead,
       and would otherwise count against a user until then.
"""

from collections.abc import Collection, Mapping
from typing import Final

from bridge.model.layers import Draft, Layers
from bridge.model.rules.resize_limits import WITHIN_S

NAME: Final = "resizes"
"""Its name in the memory file."""
MAX_OF_USER: Final = 10_000
_USER, _JOB = "u ", "j "


class ResizeTimes:
    """Instants of changes, Unix seconds.

    Attributes:
        known: all instants; immutable.
    """

    def __init__(self) -> None:
        self.known: Layers[list[int]] = Layers()

    def recall(self, known: Mapping[str, list[int]]) -> None:
        """Adds the instants of a file to those since."""
        draft = Draft(known if isinstance(known, Layers) else Layers(known))
        for key, own in self.known.items():
            draft[key] = sorted({*(draft.get(key) or ()), *own})[-MAX_OF_USER:]
        self.known = draft.done()

    def begun(self, job_id: str, user: str, now_s: int) -> None:
        """Records the begin of a change."""
        draft = Draft(self.known)
        draft[_JOB + job_id] = [now_s]
        draft[_USER + user] = [*(draft.get(_USER + user) or ()), now_s][-MAX_OF_USER:]
        self.known = draft.done()

    def of_job(self, job_id: str) -> int:
        """The begin of a job's last change; 0: never."""
        return int(self.known.get(_JOB + job_id, (0,))[-1])

    def of_user(self, user: str) -> int:
        """How often jobs of a user have changed within the last hour."""
        return len(self.known.get(_USER + user, ()))

    def keep(self, jobs: Collection[str], now_s: int) -> None:
        """Drops other jobs, and instants that are too old or in the future."""
        if not self.known:
            return
        jobs, draft = frozenset(jobs), Draft(self.known)
        for key, all_ in self.known.items():
            job = key.startswith(_JOB)
            since_s = 0 if job else now_s - WITHIN_S
            left = [at for at in all_ if since_s < at <= now_s]
            if not left or (job and key.removeprefix(_JOB) not in jobs):
                draft.pop(key)
            elif len(left) < len(all_):
                draft[key] = left
        self.known = draft.done()

    def set_back(self, by_s: int) -> None:
        """Adapts to a controller's clock that was set back."""
        draft = Draft(self.known)
        for key, all_ in self.known.items():
            draft[key] = [at - by_s for at in all_]
        self.known = draft.done()
