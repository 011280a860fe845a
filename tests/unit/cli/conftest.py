# SPDX-License-Identifier: Apache-2.0
import bench
import pytest

from bridge.cli.main import main


@pytest.fixture
def schedbridge(capsys):
    """Runs the command; gives exit code, output and errors. What escapes is a user's traceback.

    Words that begin with `bench.py` are those of that program.
    """

    def run(*arguments):
        try:
            words = [str(argument) for argument in arguments]
            code = (bench.run(words[1:]) if words[:1] == ["bench.py"] else main(words)) or 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
