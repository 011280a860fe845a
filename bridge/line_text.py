# SPDX-License-Identifier: Apache-2.0
"""Texts of others in formats whose records are lines: a name is no line.

Whoever may choose a name (of a job, a partition, a site) could otherwise add records to a trace or
a table, or send sequences to a terminal.
"""

import re

_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(text: str) -> str:
    """The text with line ends and other control characters as escapes; tabs stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
