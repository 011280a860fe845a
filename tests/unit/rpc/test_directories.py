# SPDX-License-Identifier: Apache-2.0
"""Directories of sockets: who could put another socket in their place."""

import os
import tempfile
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.rpc.transport.directories import prepare_directory
from bridge.rpc.transport.users import default_controllers, user_ids

OWN = os.geteuid()
NOBODY = 65534


def test_makes_a_closed_directory(tmp_path):
    old = os.umask(0)
    try:
        prepare_directory(tmp_path / "a" / "b", "k", owners=[OWN], private=True)
        prepare_directory(tmp_path / "c", "k", owners=[OWN], private=False)
    finally:
        os.umask(old)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_refuses_a_directory_others_can_enter(tmp_path, mode):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    with pytest.raises(ConfigError, match=rf"mode {mode:04o}\): run 'chmod 700"):
        prepare_directory(tmp_path / "d", "controller.socket", owners=[OWN], private=True)
    assert (tmp_path / "d").stat().st_mode & 0o777 == mode


def test_refuses_a_file_in_its_place(tmp_path):
    (tmp_path / "d").write_text("")
    with pytest.raises(ConfigError, match="cannot make directory"):
        prepare_directory(tmp_path / "d", "k", owners=[OWN], private=True)


def test_refuses_somebody_elses_directory(tmp_path):
    if OWN != 0:
        pytest.skip("needs root to give a directory away")
    (tmp_path / "d").mkdir(mode=0o700)
    os.chown(tmp_path / "d", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        prepare_directory(tmp_path / "d", "k", owners=[OWN], private=True)
    prepare_directory(tmp_path / "d", "k", owners=[12345], private=True)


def test_a_new_directory_belongs_to_the_controllers_user(tmp_path):
    if OWN != 0:
        pytest.skip("needs root to give a directory away")
    prepare_directory(tmp_path / "d", "k", owners=[12345], private=True)
    assert (tmp_path / "d").stat().st_uid == 12345


def test_users_by_name_and_number():
    assert user_ids(["root", 7, "8"], "k") == {0, 7, 8}
    with pytest.raises(ConfigError, match=r"controller.users: there is no user 'nobody-here'"):
        user_ids(["nobody-here"], "controller.users")
    assert {0, OWN} <= default_controllers()


needs_root = pytest.mark.skipif(OWN != 0, reason="needs root to act as somebody else")


@pytest.fixture
def shared():
    """A directory like /tmp: everybody may write, nobody may replace what is another's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        yield Path(name)


def prepare(path, private):
    prepare_directory(path, "k.socket", owners=[OWN], private=private)


@needs_root
@pytest.mark.parametrize("private", [True, False])
def test_another_users_link_is_refused(shared, private):
    (shared / "real").mkdir(mode=0o700)
    (shared / "d").symlink_to(shared / "real")
    prepare(shared / "d", private)  # one's own
    os.chown(shared / "d", NOBODY, -1, follow_symlinks=False)
    with pytest.raises(ConfigError, match=f"link {shared}/d belongs to user {NOBODY}"):
        prepare(shared / "d", private)
    with pytest.raises(ConfigError, match="belongs to user"):
        prepare(shared / "d" / "below", private)


@needs_root
def test_a_link_into_another_users_directory_is_refused(shared):
    (shared / "theirs" / "d").mkdir(parents=True)
    os.chown(shared / "theirs", NOBODY, -1)
    (shared / "link").symlink_to(shared / "theirs" / "d")
    with pytest.raises(ConfigError, match=f"directory {shared}/theirs belongs to user {NOBODY}"):
        prepare(shared / "link", private=False)


@needs_root
@pytest.mark.parametrize("private", [True, False])
def test_a_directory_below_another_users_is_refused(shared, private):
    (shared / "theirs" / "d").mkdir(parents=True, mode=0o700)
    os.chown(shared / "theirs", NOBODY, -1)
    with pytest.raises(ConfigError, match="theirs belongs to user"):
        prepare(shared / "theirs" / "d", private)
    with pytest.raises(ConfigError, match="theirs belongs to user"):
        prepare(shared / "theirs" / "new", private)
    assert not (shared / "theirs" / "new").exists()


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o702])
def test_an_operators_directory_that_others_can_write_to_is_refused(tmp_path, mode):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    with pytest.raises(ConfigError, match=rf"mode {mode:04o}\): run 'chmod go-w {tmp_path}/d'"):
        prepare(tmp_path / "d", private=False)
    (tmp_path / "d").chmod(mode | 0o1000)
    prepare(tmp_path / "d", private=False)


@pytest.mark.parametrize("private", [True, False])
def test_a_way_that_others_can_change_is_refused(tmp_path, private):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match="can replace what lies in directory"):
        prepare(tmp_path / "open" / "d", private)
    assert not (tmp_path / "open" / "d").exists()
    (tmp_path / "open").chmod(0o1777)
    prepare(tmp_path / "open" / "d", private)


@needs_root
def test_a_group_that_can_write_is_refused(tmp_path):
    (tmp_path / "d").mkdir()
    os.chown(tmp_path / "d", 0, 4321)
    (tmp_path / "d").chmod(0o775)
    with pytest.raises(ConfigError, match="mode 0775"):
        prepare(tmp_path / "d", private=False)
    (tmp_path / "d").chmod(0o750)
    prepare(tmp_path / "d", private=False)  # a group that may look


def test_what_is_made_on_the_way_is_closed_to_writers_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        prepare(tmp_path / "a" / "b" / "c", private=True)
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o755


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(ConfigError, match="too many links"):
        prepare(tmp_path / "a", private=True)
