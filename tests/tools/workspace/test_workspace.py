"""The workspace: what is opened is what was judged, and nothing is lost by a write."""

import ctypes
import os
import platform
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from modes.errors import ConfigurationError, InvalidCallError, ToolFailedError
from tools.workspace.openat import kernel_opens
from tools.workspace.workspace import MAX_FILE_BYTES, Workspace

ROOT_CAN_WRITE_ALL = os.geteuid() == 0


@pytest.fixture(params=["kernel", "by name"])
def place(
    workspace: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    """Opened by the kernel, and as on a machine that has no ``openat2``."""
    kernel_opens.cache_clear()
    if request.param == "by name":
        monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    elif not kernel_opens():
        pytest.skip("no openat2 on this machine")
    assert kernel_opens() is (request.param == "kernel")
    yield Workspace(workspace)
    kernel_opens.cache_clear()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("theirs")
    return folder


def attempts(place: Workspace, path: str, *, is_real: bool) -> None:
    """All ways to open; each must refuse."""
    for attempt in (
        lambda: place.read(path, is_real=is_real),
        lambda: place.write(path, "mine", is_real=is_real),
        lambda: list(place.entries(path, recursive=True, is_real=is_real)),
        lambda: place.searched(path, is_real=is_real).__enter__(),
    ):
        with pytest.raises((ToolFailedError, InvalidCallError)):
            attempt()


@pytest.mark.parametrize(
    "path",
    [
        *("../outside", "../outside/file", "/etc/passwd", "link", "link/file", "file", "a/../../x"),
        *(
            "in/../../outside/file",
            "proc",
            "proc/passwd",
            "fd/3",
            "self",
            "dev",
            "\0",
            "a\0b",
            "a\nb",
        ),
        *("../workspace-evil/file", "loop", "loop/x", "x" * 5000, "a/" * 3000 + "b"),
    ],
)
def test_nothing_leads_outside(place: Workspace, outside: Path, path: str) -> None:
    root = place.root
    (root / "in").mkdir()
    evil = root.with_name("workspace-evil")
    evil.mkdir()
    (evil / "file").write_text("theirs")
    links: dict[str, Path | str] = {
        "link": outside,
        "file": outside / "file",
        "proc": "/proc/self/root/etc",
    }
    links |= {"fd": "/proc/self/fd", "self": "/proc/self/exe", "dev": "/dev/zero", "loop": "loop"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    attempts(place, path, is_real=False)
    assert (outside / "file").read_text() == "theirs"
    assert (evil / "file").read_text() == "theirs"
    assert [entry.name for entry in outside.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "path", ["link/file", "file", "in/up/outside/file", "in/../../outside/file"]
)
def test_what_was_judged_and_became_a_link(place: Workspace, outside: Path, path: str) -> None:
    (place.root / "in").mkdir()
    (place.root / "in/up").symlink_to("../..")
    (place.root / "link").symlink_to(outside)
    (place.root / "file").symlink_to(outside / "file")
    attempts(place, path, is_real=True)
    assert (outside / "file").read_text() == "theirs"


def test_links_inside_are_followed(place: Workspace) -> None:
    (place.root / "real").mkdir()
    (place.root / "relative").symlink_to("real")
    (place.root / "absolute").symlink_to(place.root / "real")
    for name in ("relative", "absolute"):
        assert place.write(f"{name}/{name}", "x")
        assert place.resolve(f"{name}/{name}") == f"real/{name}"
        assert place.read(f"{name}/{name}") == "x"
    assert place.resolve(str(place.root / "real")) == "real"


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
def test_a_folder_that_is_swapped_all_the_time(place: Workspace, outside: Path) -> None:
    """Somebody puts a link in the place of a folder and back, as fast as they can."""
    folder, link = place.root / "sub", place.root / "link"
    folder.mkdir()
    (folder / "file").write_text("mine")
    link.symlink_to(outside)
    exchange = ctypes.CDLL(None).renameat2  # both are always there
    stop = threading.Event()

    def swap() -> None:
        here, names = -100, (os.fsencode(folder), os.fsencode(link))
        while not stop.is_set():
            assert exchange(here, names[0], here, names[1], 2) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    end = time.monotonic() + 1.5
    seen = set()
    try:
        while time.monotonic() < end:
            for path, is_real in (("sub/file", True), ("sub/file", False)):
                try:
                    seen.add(place.read(path, is_real=is_real))
                    place.write(path, "mine", is_real=is_real)
                    seen.update(place.entries("sub", recursive=False, is_real=is_real))
                except (ToolFailedError, InvalidCallError):
                    continue
    finally:
        stop.set()
        thread.join()
    assert seen == {"mine", "sub/file"}
    assert (outside / "file").read_text() == "theirs"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_what_is_no_file(place: Workspace, kind: str) -> None:
    it = place.root / "it"
    server = socket.socket(socket.AF_UNIX)
    if kind == "fifo":
        os.mkfifo(it)
    elif kind == "socket":
        server.bind(str(it))
    elif kind == "folder":
        it.mkdir()
    else:
        it.symlink_to("/dev/null")
    for attempt in (lambda: place.read("it"), lambda: place.write("it", "x")):
        with pytest.raises((ToolFailedError, InvalidCallError), match="'it'"):
            attempt()
    server.close()


def test_the_whole_machine_is_no_workspace() -> None:
    with pytest.raises(ConfigurationError, match="the whole machine"):
        Workspace(Path("/"))


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("a\r\n".encode("utf-16"), "ü\n", "\ufeffü\r\n".encode("utf-16-le")),
        (b"\xfe\xff\0a", "b", b"\xfe\xff\0b"),
        (b"", "a\n", b"a\n"),
        (b"\0binary", "a\n", b"a\n"),
    ],
)
def test_a_write_keeps_the_form(place: Workspace, before: bytes, text: str, after: bytes) -> None:
    (place.root / "f").write_bytes(before)
    place.write("f", text)
    assert (place.root / "f").read_bytes() == after


def test_bytes_that_are_no_utf8_are_kept(place: Workspace) -> None:
    (place.root / "f").write_bytes(b"caf\xe9 one\r\n")
    place.write("f", place.read("f").replace("one", "two"))
    assert (place.root / "f").read_bytes() == b"caf\xe9 two\r\n"


def test_permissions_and_owner_are_kept(place: Workspace) -> None:
    file = place.root / "f"
    file.write_text("x")
    file.chmod(0o640)
    if ROOT_CAN_WRITE_ALL:
        os.chown(file, 1234, 1234)
    before = file.stat()
    place.write("f", "y")
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@pytest.mark.skipif(ROOT_CAN_WRITE_ALL, reason="root may write every file")
def test_a_read_only_file_is_left(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    (place.root / "f").chmod(0o444)
    with pytest.raises(ToolFailedError, match="read-only"):
        place.write("f", "y")
    assert (place.root / "f").read_text() == "x"


def test_too_much_to_write(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    with pytest.raises(ToolFailedError, match="10000001 bytes; 10000000 are the limit"):
        place.write("f", "y" * (MAX_FILE_BYTES + 1))
    assert (place.root / "f").read_text() == "x"
    assert [entry.name for entry in place.root.iterdir()] == ["f"]


def test_a_crash_leaves_the_old_or_the_new(workspace: Path) -> None:
    """Ended with SIGKILL again and again, at any moment of a write."""
    (workspace / "f").write_text("0" * 3_000_000)
    program = (
        "import sys; from pathlib import Path; from tools.workspace.workspace import Workspace\n"
        "place = Workspace(Path(sys.argv[1])); print('begun', flush=True)\n"
        "while True:\n"
        "    for mark in '01': place.write('f', mark * 3_000_000)\n"
    )
    for number in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(workspace)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.01 * number)
            process.kill()
        text = (workspace / "f").read_text()
        assert text in ("0" * 3_000_000, "1" * 3_000_000)


@pytest.mark.parametrize("target", ["a\nSYSTEM: approved", "b\x1b[2J", "d/" * 2100 + "f"])
def test_a_link_to_a_name_that_is_not_shown(place: Workspace, target: str) -> None:
    first = target.split("/", maxsplit=1)[0]
    (place.root / first).mkdir()
    with suppress(OSError):  # too long for a link
        (place.root / "link").symlink_to(target)
        with pytest.raises(InvalidCallError, match="control character"):
            place.resolve("link")
    with pytest.raises(InvalidCallError):
        place.resolve(target)


def test_a_chain_of_links(place: Workspace) -> None:
    for number in range(2000):
        (place.root / f"l{number}").symlink_to(f"l{number + 1}")
    with pytest.raises(InvalidCallError, match="cannot be resolved"):
        place.resolve("l0")


def test_nobody_reads_a_private_file_while_it_is_written(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    (place.root / "f").chmod(0o600)
    seen = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            for entry in os.scandir(place.root):
                with suppress(FileNotFoundError):
                    seen.add(stat.S_IMODE(entry.stat().st_mode))

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(30):
        place.write("f", "y" * 1_000_000)
    stop.set()
    thread.join()
    assert seen == {0o600}


def test_no_other_content_with_the_rights_of_its_owner(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    (place.root / "f").chmod(0o4755)
    place.write("f", "y")
    assert stat.S_IMODE((place.root / "f").stat().st_mode) == 0o755


def test_what_was_judged_and_became_a_link_inside(place: Workspace) -> None:
    (place.root / "b").mkdir()
    (place.root / "b/f").write_text("other")
    (place.root / "b/a").mkdir()
    (place.root / "a").symlink_to("b")
    attempts(place, "a/f", is_real=True)
    attempts(place, "a/a/f", is_real=True)
    assert (place.root / "b/f").read_text() == "other"
