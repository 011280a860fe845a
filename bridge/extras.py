# SPDX-License-Identifier: Apache-2.0
"""Packages that a plain installation lacks, and the extras of pyproject.toml that bring them."""

import importlib.util

from bridge.errors import ConfigError


def need(package: str, extra: str, option: str) -> None:
    """Makes sure that a package can be imported.

    Raises:
        ConfigError: it is not installed; the message names the extra.
    """
    if not has(package):
        raise ConfigError(
            option, f"needs {package}, which is not installed: pip install 'schedbridge[{extra}]'"
        )


def has(package: str) -> bool:
    """Whether a package is installed; it is not imported."""
    return importlib.util.find_spec(package) is not None
