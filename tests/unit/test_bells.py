"""Doorbells, without a database: where they hang, and that a ring never disturbs who rings."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from alkstore_django import bells
from tests.processes import ROOT


@pytest.fixture
def porch() -> Iterator[Path]:
    """A directory with a path that is short enough."""
    with tempfile.TemporaryDirectory(prefix="b", dir="/tmp") as path:
        yield Path(path)


def hang(path: Path) -> socket.socket:
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bell.setblocking(False)
    bell.bind(str(path))
    return bell


def rings(bell: socket.socket) -> int:
    """How often it rang, up to what it can hold."""
    count = 0
    try:
        while True:
            bell.recv(1)
            count += 1
    except BlockingIOError:
        return count


def test_every_bell_rings(porch: Path) -> None:
    other = porch / "other"
    other.mkdir()
    paths = (porch / "a.bell", porch / "b.bell", other / "c.bell")
    with closing(hang(paths[0])) as a, closing(hang(paths[1])) as b, closing(hang(paths[2])) as c:
        bells.ring([str(porch), str(porch / "none"), str(other)])
        assert [rings(a), rings(b), rings(c)] == [1, 1, 1]


def test_what_is_no_bell(porch: Path) -> None:
    (porch / "file.bell").write_text("a file")
    (porch / "file").write_text("a file")
    with closing(hang(porch / "socket")) as other, closing(hang(porch / "z.bell")) as bell:
        bells.ring([str(porch)])
        assert (rings(other), rings(bell)) == (0, 1)
    assert sorted(os.listdir(porch)) == ["file", "file.bell", "socket", "z.bell"]


def test_a_bell_whose_worker_was_killed_is_taken_away(porch: Path) -> None:
    hang(porch / "dead.bell").close()
    with closing(hang(porch / "live.bell")) as bell:
        bells.ring([str(porch)])
        assert rings(bell) == 1
    assert os.listdir(porch) == ["live.bell"]


def test_a_bell_that_nobody_answers(porch: Path) -> None:
    """Its buffer is full: whoever rings does not wait, and the others ring."""
    with closing(hang(porch / "deaf.bell")) as deaf, closing(hang(porch / "live.bell")) as bell:
        for _ in range(2_000):
            bells.ring([str(porch)])
            assert rings(bell) == 1
        assert 0 < rings(deaf) < 2_000


def test_a_bell_that_may_not_be_rung(porch: Path) -> None:
    """By a user who has no right to: nothing is raised, and the others ring."""
    porch.chmod(0o755)
    with closing(hang(porch / "a.bell")) as theirs, closing(hang(porch / "b.bell")) as ours:
        hang(porch / "dead.bell").close()
        (porch / "a.bell").chmod(0)
        (porch / "b.bell").chmod(0o666)
        # Nobody reads this directory: what is needed is imported before the user changes.
        program = (
            f"import os; from alkstore_django import bells; os.getuid() or os.setuid(65534); "
            f"bells.ring([{str(porch)!r}])"
        )
        subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
        assert (rings(theirs), rings(ours)) == (0, 1)


def test_beside_the_file_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    bells.directories.cache_clear()
    beside, runtime, temporary = bells.directories("/srv/db.sqlite3", None)
    assert beside == "/srv/db.sqlite3-bells"
    assert runtime.startswith("/run/user/7/")
    assert temporary.startswith("/tmp/alkstore-")
    bells.directories.cache_clear()


def test_one_directory_that_was_chosen() -> None:
    (chosen,) = bells.directories("/srv/db.sqlite3", "/run/bells")
    (other,) = bells.directories("/srv/other.sqlite3", Path("/run/bells"))
    assert os.path.dirname(chosen) == os.path.dirname(other) == "/run/bells"
    assert chosen != other
    assert bells.directories("/srv/db.sqlite3", "/run/" + "b" * 100) == ()


@pytest.mark.parametrize("length", range(60, 120))
def test_paths_are_short_enough_for_a_socket(length: int) -> None:
    """Whatever is offered can be bound; counted in bytes."""
    file = "/" + "ä" * (length // 2)
    for directory in bells.directories(file, None):
        assert len(os.fsencode(os.path.join(directory, "x" * 16 + bells.SUFFIX))) <= 107
    assert bells.directories(file, None)


def test_the_real_file(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = os.path.realpath(tmp_path / "real")
    for name in (tmp_path / "link", str(tmp_path / "link"), f"file:{tmp_path}/link?mode=rwc"):
        assert bells.file_of(name) == real
    assert bells.file_of(f"file:{tmp_path}/with%20space") == os.path.realpath(tmp_path / "with space")
