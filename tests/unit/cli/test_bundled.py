# SPDX-License-Identifier: Apache-2.0
"""Files that come with schedbridge are found by their names, in any folder."""

import json
from pathlib import Path

import pytest

from bridge.cli.bundled import bundled
from bridge.cli.main import main

NAMES = ("KTH-SP2-1996-excerpt.swf.gz", "interference.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_without_a_folder_means_the_bundled_file(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = bundled(Path(name))
    assert inside.is_file()
    assert inside.is_absolute()
    assert bundled(Path(name), tmp_path) == inside


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_there_comes_first(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    (tmp_path / "other").mkdir()
    assert bundled(Path(name)) == Path(name)
    assert bundled(Path(name), tmp_path) == tmp_path / name
    assert bundled(Path(name), tmp_path / "other").parent.name == "data"


@pytest.mark.parametrize("name", ["missing.swf", "other/interference.json", "/interference.json"])
def test_any_other_name_is_what_it_says(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert bundled(Path(name)) == Path(name)
    assert bundled(Path(name), tmp_path) == tmp_path / name


def test_commands_take_the_names_away_from_a_checkout(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    trace, model = NAMES
    with pytest.raises(SystemExit) as ended:
        main(["lab", "simulate", trace, "--jobs", "20", "--json", "--interference", model])
    assert ended.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)["jobs"] == 20
    with pytest.raises(SystemExit) as ended:
        main(["lab", "generate", trace, "--weeks", "1", "--out", "more.swf.gz"])
    assert ended.value.code in (0, None)
    plan = {
        "results": "results",
        "policies": ["easy"],
        "traces": [{"file": trace, "jobs": 20, "interference": model}],
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    with pytest.raises(SystemExit) as ended:
        main(["lab", "experiment", "plan.yaml", "--dry-run"])
    assert ended.value.code in (0, None)
