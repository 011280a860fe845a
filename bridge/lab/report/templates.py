# SPDX-License-Identifier: Apache-2.0
"""Fills in the templates of pages; every text is escaped unless its template says `safe`."""

from importlib.resources import files

from bridge.extras import need


def page_of(package: str, **parts: object) -> str:
    """Returns the page of a package, from its `page.html`.

    Args:
        parts: what the template names; markup where it says `safe`.

    Raises:
        ConfigError: jinja2 is not installed.
    """
    need("jinja2", "plots", "html")
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - an extra

    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    text = files(package).joinpath("page.html").read_text(encoding="utf-8")
    return templates.from_string(text).render(style=style(), **parts)


def style() -> str:
    """The style sheet of all pages."""
    return files("bridge.lab.report").joinpath("style.css").read_text(encoding="utf-8")
