# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.cli.main import main


@pytest.fixture
def schedbridge(capsys):
    """Runs the command; gives exit code, output and errors. What escapes is a user's traceback."""

    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments]) or 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
