"""A lock on a folder."""

import pytest

from scenegraph.io import FileError, LOCK_FILE, locked_folder


def test_a_folder_is_held_once_and_nothing_is_left(tmp_path):
    folder = tmp_path / "runs" / "one"
    with locked_folder(folder, "a fit"):
        with pytest.raises(FileError, match=r"one is in use by a fit \(process \d+ on .*--out"):
            with locked_folder(folder, "a fit"):
                pass
        assert [path.name for path in folder.iterdir()] == [LOCK_FILE]
    assert not (tmp_path / "runs").exists()
    with locked_folder(folder, "a fit"):
        (folder / "kept").touch()
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_the_file_of_a_process_that_was_killed_is_no_lock(tmp_path):
    (tmp_path / LOCK_FILE).write_text("process 1 on nowhere")
    with locked_folder(tmp_path, "a fit"):
        assert "nowhere" not in (tmp_path / LOCK_FILE).read_text()
    assert not (tmp_path / LOCK_FILE).exists()


def test_a_lock_on_a_file_that_was_just_removed_is_taken_again(tmp_path, monkeypatch):
    from scenegraph.io import _lock

    acquire = _lock._acquire

    def lose_it_once(file):
        monkeypatch.setattr(_lock, "_acquire", acquire)
        acquire(file)
        (tmp_path / LOCK_FILE).unlink()

    monkeypatch.setattr(_lock, "_acquire", lose_it_once)
    with locked_folder(tmp_path, "a fit"):
        with pytest.raises(FileError, match="in use"), locked_folder(tmp_path, "a fit"):
            pass
