# SPDX-License-Identifier: Apache-2.0
"""Texts of others in formats whose records are lines: a name is no line.

Whoever may choose a name (of a job, a partition, a site) could otherwise add records to a trace or
a table, or send sequences to a terminal.
"""

import re

_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udc7f\udd00-\udfff]")


def on_one_line(text: str) -> str:
    """The text with line ends, other control characters and halves of characters as escapes.

    Tabs stay, and the halves that stand for bytes of a file that is not UTF-8 (surrogateescape).
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
