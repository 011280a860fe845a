# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: `pytest --schedbridge-policy NAME` runs the contract suite on a preset.

pytest loads this module in each of its runs wherever schedbridge is installed: so it imports the
suite only when it is asked for.
"""

import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent
OPTION = "schedbridge_policy"

pytest.register_assert_rewrite(
    *({f"{__package__}.{path.stem}" for path in SUITE.glob("*.py")} - sys.modules.keys())
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    group = parser.getgroup("schedbridge")
    group.addoption(
        "--schedbridge-policy",
        metavar="PRESET",
        dest=OPTION,
        help="run schedbridge's contract suite on this installed policy, beside the tests that are"
        " named",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the policy, and adds the suite to the tests that were named."""
    name = config.getoption(OPTION)
    if name is None:
        return
    from bridge.errors import ConfigError
    from schedbridge_contracts import subject

    try:
        subject.choose(name)
    except ConfigError as error:
        raise pytest.UsageError(f"--schedbridge-policy: {error}") from error
    # As a folder, so that pytest names each test by its file; whatever files the caller's tests
    # are in.
    config.getini("python_files").append(str(SUITE / "test_*.py"))
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args = [*(config.args if is_named else ()), str(SUITE)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Lets the suite be collected inside of a virtual environment, where pytest finds none."""
    is_wanted = config.getoption(OPTION) is not None
    within = collection_path == SUITE or collection_path in SUITE.parents
    return False if is_wanted and (within or collection_path.parent == SUITE) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests of a stage for which the policy has nothing to be tried."""
    if config.getoption(OPTION) is None:
        return
    empty = [item for item in items if item.path.parent == SUITE and "NOTSET" in item.name]
    if empty:
        config.hook.pytest_deselected(items=empty)
        items[:] = [item for item in items if item not in empty]
