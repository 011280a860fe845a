# SPDX-License-Identifier: Apache-2.0
"""Whose folders count, and what is read from them."""

import os

import pytest

from bridge.agent.job_folders import JobFolders
from tests.unit.agent.made_up import make_folders

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users: root only")


@root_only
def test_the_owner_of_a_folder_is_the_jobs_user(tmp_path):
    make_folders(tmp_path / "jobs", "7", uid=61001)
    folders = make_folders(tmp_path / "jobs", "8", uid=61002)
    (tmp_path / "jobs" / "9").write_text("")
    (tmp_path / "jobs" / "10").symlink_to("7")
    assert [folders.user_of(job) for job in ("7", "8", "9", "10", "11")] == [
        61001, 61002, None, None, None,
    ]  # fmt: skip


def test_other_names_are_no_jobs(tmp_path):
    folders = make_folders(tmp_path / "jobs", "7", ".ended.1", "steps", "7_1", "07")
    assert folders.jobs() == ["7"]
    assert JobFolders(tmp_path / "none").jobs() == []


def test_a_folder_is_empty_until_something_is_in_it(tmp_path):
    folders = make_folders(tmp_path / "jobs", "7", "8")
    (tmp_path / "jobs" / "8" / ".x").write_text("")
    assert [folders.is_empty(job) for job in ("7", "8", "9")] == [True, False, True]


@root_only
def test_a_directory_in_which_others_may_make_names_is_not_believed(tmp_path):
    folders = make_folders(tmp_path / "jobs", "7", uid=61001)
    for mode, owner, is_ours in (
        (0o711, 0, True), (0o755, 0, True), (0o1777, 0, False), (0o720, 0, False),
        (0o711, 61002, False),
    ):  # fmt: skip
        (tmp_path / "jobs").chmod(mode)
        os.chown(tmp_path / "jobs", owner, owner)
        assert folders.user_of("7") == (61001 if is_ours else None)
        assert folders.jobs() == (["7"] if is_ours else [])
    (tmp_path / "link").symlink_to(tmp_path / "jobs")
    os.chown(tmp_path / "jobs", 0, 0)
    assert JobFolders(tmp_path / "link").user_of("7") is None


@root_only
def test_files_of_others_are_not_read(tmp_path):
    """Although the user has let them in."""
    folders = make_folders(tmp_path / "jobs", "7", uid=61001)
    for name, uid in (("own", 61001), ("other", 61002), ("roots", 0)):
        (tmp_path / "jobs" / "7" / name).write_text("0.5 and more")
        os.chown(tmp_path / "jobs" / "7" / name, uid, uid)
    file = folders.read("7", "own", 3)
    assert file is not None
    assert (file.size, file.raw) == (12, b"0.5")
    assert folders.read("7", "other", 3) is None
    assert folders.read("7", "roots", 3) is None
    assert folders.read("7", "none", 3) is None
    assert folders.read("8", "own", 3) is None
