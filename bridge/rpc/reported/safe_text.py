# SPDX-License-Identifier: Apache-2.0
"""Makes text from users and controllers safe: short and printable, never refused."""

MAX_TEXT = 200
MAX_PLAIN = 160


def printable(text: str) -> str:
    """Shortens text and replaces unprintable characters."""
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 3] + "..."
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)


def plain(text: str) -> str:
    """Printable ASCII of at most 160 characters, as a controller shows it to its users."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(char if " " <= char <= "~" else "?" for char in text)
    return text if len(text) <= MAX_PLAIN else text[: MAX_PLAIN - 3] + "..."
