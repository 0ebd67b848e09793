"""The workspace: what is opened is what was judged, and nothing is lost by a write."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from modeshift.modes.errors import ConfigurationError, InvalidCallError, ToolFailedError
from modeshift.tools.workspace.client_files import buffers
from modeshift.tools.workspace.opening import opened_folder
from modeshift.tools.workspace.workspace import MAX_FILE_BYTES, Workspace
from tests.tables import rows
from tests.tools.racing import swapping

IS_ROOT = os.geteuid() == 0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")


@pytest.fixture
def place(workspace: Path) -> Workspace:
    return Workspace(workspace)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("theirs")
    return folder


def test_what_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root, problem in (
        (tmp_path / "missing", "missing"),
        (tmp_path / "file", "is not a folder"),
        (Path("/"), "is the whole machine"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            Workspace(root)


@rows(
    "path",
    *(
        *("../outside", "../outside/file", "/etc/passwd", "/", "link", "link/file", "file"),
        "a/../../x",
    ),
    *("in/../../outside/file", "proc", "proc/passwd", "fd/3", "self", "dev", "l0"),
    *("\0", "a\0b", "a\nb", "../workspace-evil/file", "loop", "loop/x", "one", "other"),
    *("x" * 5000, "a/" * 3000 + "b"),
)
def test_nothing_leads_outside(place: Workspace, outside: Path, path: str) -> None:
    (place.root / "in").mkdir()
    place.root.with_name("workspace-evil").mkdir()
    links: dict[str, Path | str] = {
        "link": outside,
        "file": outside / "file",
        "proc": "/proc/self/root/etc",
        "fd": "/proc/self/fd",
        "self": "/proc/self/exe",
        "dev": "/dev/zero",
        "loop": "loop",
        "one": "other",
        "other": "one",
    }
    links |= {f"l{number}": f"l{number + 1}" for number in range(2000 if path == "l0" else 0)}
    for name, target in links.items():
        (place.root / name).symlink_to(target)
    # From Python 3.13 on a chain is followed to its end, which is in the workspace, and not there.
    late = (ToolFailedError, InvalidCallError) if path == "l0" else ToolFailedError
    with pytest.raises(late if path in ("l0", "loop/x") else InvalidCallError):
        place.read(place.resolve(path))
    with suppress(InvalidCallError):
        assert place.resolve_at_once(path) is None


@pytest.mark.parametrize("target", ["a\nSYSTEM: approved", "b\x1b[2J", "d/" * 2100 + "f"])
def test_a_link_to_a_name_that_is_not_shown(place: Workspace, target: str) -> None:
    first = target.split("/", maxsplit=1)[0]
    (place.root / first).mkdir()
    with suppress(OSError):  # too long for a link
        (place.root / "link").symlink_to(target)
        for resolve in (place.resolve, place.resolve_at_once):
            with pytest.raises(InvalidCallError, match="control character"):
                resolve("link")
    with pytest.raises(InvalidCallError):
        place.resolve(target)


def test_links_inside_are_followed_and_nothing_is_expanded(place: Workspace) -> None:
    for path in ("~", "$HOME", "~root", "${HOME}/x", "%USERPROFILE%"):
        assert place.resolve(path) == path
    (place.root / "real").mkdir()
    (place.root / "relative").symlink_to("real")
    (place.root / "absolute").symlink_to(place.root / "real")
    for name in ("relative", "absolute"):
        assert place.resolve(f"{name}/{name}") == f"real/{name}"
    assert place.resolve(str(place.root / "real")) == "real"
    assert place.resolve_at_once("relative") == ("real" if sys.platform == "linux" else None)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it always takes a closer look")
def test_where_a_new_file_will_be(place: Workspace, outside: Path) -> None:
    (place.root / "real").mkdir()
    (place.root / "real/f").touch()
    (place.root / "out").symlink_to(outside)
    for name, target in {"inside": "real", "dangling": "real/gone", "loop": "loop"}.items():
        (place.root / name).symlink_to(target)
    here = {"new": "new", "./new": "new", "inside/new": "real/new", "inside/../new": "new"}
    for path, found in here.items():
        assert place.resolve_at_once(path) == place.resolve(path) == found
    unclear = ("new/", "gone/new", "real/f/new", "out/new", "dangling", "loop/new", "~", "gone/..")
    for path in (*unclear, "n" * 256, "é" * 128, "\ud800"):
        assert place.resolve_at_once(path) is None
    with opened_folder(place.root, ["real"]) as folder:
        shutil.rmtree(place.root / "real")  # as somebody may, while the path is looked up
        assert place.resolve_at_once(f"/proc/self/fd/{folder}/new") is None
        assert place.resolve_at_once(f"/proc/self/fd/{folder}") is None


@rows(
    "path",
    *("link/file", "file", "in/up/outside/file", "inside/f", "inside/b/f", "short"),  # links
    *("in/../../outside/file", "../x", "/etc/passwd", "", ".", "in//x", "./x"),
)
def test_what_was_judged_and_became_another(place: Workspace, outside: Path, path: str) -> None:
    root = place.root
    (root / "in").mkdir()
    (root / "real/b").mkdir(parents=True)
    for name in ("real/f", "real/b/f"):
        (root / name).write_text("other")
    links: dict[str, Path | str] = {"in/up": "../..", "link": outside, "file": outside / "file"}
    links |= {"inside": "real", "short": "real/f"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    attempts: list[Callable[[], object]] = [
        lambda: place.read(path),
        lambda: place.write(path, "mine"),
        lambda: place.open_for_search(path).__enter__(),
        lambda: list(place.list_entries(path, 9)),
    ]
    for attempt in attempts[: 2 if path == "." else None]:
        with pytest.raises(ToolFailedError):
            attempt()
    assert (outside / "file").read_text() == "theirs"
    assert [entry.name for entry in outside.iterdir()] == ["file"]
    assert {file.read_text() for file in root.rglob("f")} == {"other"}
    assert not (root / "in/x").exists()


@on_linux
def test_a_folder_that_is_swapped_all_the_time(place: Workspace, outside: Path) -> None:
    (place.root / "sub").mkdir()
    (place.root / "sub/file").write_text("mine")
    (place.root / "link").symlink_to(outside)
    seen = set()
    with swapping((place.root / "sub", place.root / "link")):
        for _ in range(400):
            with suppress(ToolFailedError, InvalidCallError):
                path = place.resolve("sub/file")
                seen.add(place.read(path))
                place.write(path, "mine")
                seen.update(place.list_entries("sub", 1))
    assert seen <= {"mine", "sub/file"}
    assert (outside / "file").read_text() == "theirs"
    assert [entry.name for entry in outside.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["fifo", "device", "folder"])
def test_what_is_not_a_file(place: Workspace, kind: str) -> None:
    make: dict[str, Callable[[Path], object]] = {
        "fifo": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/null"),
        "folder": Path.mkdir,
    }
    make[kind](place.root / "it")
    for attempt in (lambda: place.read("it"), lambda: place.write("it", "x")):
        with pytest.raises(ToolFailedError, match="'it'"):
            attempt()


def test_what_the_agent_has_locks_on_is_not_opened(workspace: Path, outside: Path) -> None:
    """By no name: POSIX would release the locks."""
    os.link(outside / "file", workspace / "linked")
    place = Workspace(workspace, [outside / "file", outside / "missing"])
    for attempt in (lambda: place.read("linked"), lambda: place.write("linked", "x")):
        with pytest.raises(ToolFailedError, match="is the agent's own"):
            attempt()
    assert (outside / "file").read_text() == "theirs"


class SwappingEditor:
    """An editor for which somebody puts a link into a folder's place, before it opens the file."""

    writes = True

    def __init__(self, folder: Path, target: Path, *, is_late: bool) -> None:
        self.folder, self.target, self.is_late = folder, target, is_late
        self.opened = 0

    def swap(self) -> None:
        if not self.folder.is_symlink():
            self.folder.rename(self.folder.with_name("moved"))
            self.folder.symlink_to(self.target)

    @property
    def reads(self) -> bool:
        if not self.is_late:
            self.swap()
        return True

    def read(self, file: Path) -> str:
        self.opened += 1
        self.swap()
        return file.read_text()

    def write(self, file: Path, text: str) -> None:
        self.opened += 1
        file.write_text(text)


@rows(
    "writes is_late why",
    (False, False, "is not where it was"),
    (True, False, "is not where it was"),
    (False, True, "was moved while the editor had it"),
)
def test_an_editor_gets_no_path_with_a_link(
    place: Workspace, outside: Path, writes: bool, is_late: bool, why: str
) -> None:
    (place.root / "sub").mkdir()
    (place.root / "sub/file").write_text("mine")
    editor = SwappingEditor(place.root / "sub", outside, is_late=is_late)
    token = buffers.set(editor)
    try:
        with pytest.raises(ToolFailedError, match=why):
            place.write("sub/file", "x") if writes else place.read("sub/file")
    finally:
        buffers.reset(token)
    assert editor.opened == is_late
    assert (outside / "file").read_text() == "theirs"


@rows(
    "before text after",
    (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
    (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
    (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
    ("a\r\n".encode("utf-16"), "ü\n", "\ufeffü\r\n".encode("utf-16-le")),
    (b"\xfe\xff\0a", "b", b"\xfe\xff\0b"),
    (b"\0binary", "a\n", b"a\n"),
    (b"caf\xe9 one\r\n", "caf\udce9 two\n", b"caf\xe9 two\r\n"),
)
def test_a_write_keeps_the_format(place: Workspace, before: bytes, text: str, after: bytes) -> None:
    (place.root / "f").write_bytes(before)
    place.write("f", text)
    assert (place.root / "f").read_bytes() == after


@pytest.mark.parametrize(("before", "after"), [(0o640, 0o640), (0o4755, 0o755)])
def test_permissions_and_owner_are_kept(place: Workspace, before: int, after: int) -> None:
    """But for setuid: no other content gets the rights of the file's owner."""
    file = place.root / "f"
    file.write_text("x")
    if IS_ROOT:
        os.chown(file, 1234, 1234)
    file.chmod(before)
    old = file.stat()
    place.write("f", "y")
    new = file.stat()
    assert stat.S_IMODE(new.st_mode) == after
    assert (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid)


@pytest.mark.skipif(IS_ROOT, reason="root may write every file")
def test_a_read_only_file_is_left(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    (place.root / "f").chmod(0o444)
    with pytest.raises(ToolFailedError, match="read-only"):
        place.write("f", "y")
    assert (place.root / "f").read_text() == "x"


def test_a_write_that_is_refused_changes_nothing(place: Workspace) -> None:
    (place.root / "f").write_text("x")
    with pytest.raises(ToolFailedError, match="10000001 bytes; 10000000 are the limit"):
        place.write("f", "y" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ToolFailedError, match="has changed meanwhile"):
        place.write("f", "new", instead_of="old")
    assert (place.root / "f").read_text() == "x"
    assert [entry.name for entry in place.root.iterdir()] == ["f"]


def test_a_crash_leaves_the_old_or_the_new(workspace: Path) -> None:
    """Ended with SIGKILL while it writes without a pause."""
    texts = ("0" * 3_000_000, "1" * 3_000_000)
    (workspace / "f").write_text(texts[0])
    program = (
        "import sys; from pathlib import Path\n"
        "from modeshift.tools.workspace.workspace import Workspace\n"
        "place = Workspace(Path(sys.argv[1]))\n"
        "while True:\n"
        "    for mark in '01': place.write('f', mark * 3_000_000); print(mark, flush=True)\n"
    )
    for count in (1, 3):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(workspace)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            for _ in range(count):
                process.stdout.readline()
            process.kill()
        assert (workspace / "f").read_text() in texts


def test_nobody_reads_a_private_file_while_it_is_written(place: Workspace) -> None:
    """Looked at when all is written, before its permissions become those of the old file."""
    (place.root / "f").write_text("x")
    (place.root / "f").chmod(0o640)
    seen: list[int] = []
    is_on = True

    def look(event: str, args: tuple[Any, ...]) -> None:
        if is_on and event == "os.chmod":
            seen.append(stat.S_IMODE(os.stat(args[0]).st_mode))

    sys.addaudithook(look)
    before = os.umask(0)
    try:
        place.write("f", "y")
    finally:
        os.umask(before)
        is_on = False  # a hook cannot be removed
    assert seen == [0o600]


def put_link(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder / "in")
    (folder / "in").symlink_to(outside)


WRONG: dict[str, Callable[[Path, Path], object]] = {
    "other contents": lambda folder, _: (folder / "in/a.txt").write_text("mine"),
    "other permissions": lambda folder, _: (folder / "in/a.txt").chmod(0o640),
    "nothing": lambda folder, _: (folder / "in/a.txt").unlink(),
    "no folder": lambda folder, _: shutil.rmtree(folder / "in"),
    "a folder that is a link, with the same file": put_link,
    "a file that an ignore file names": lambda folder, _: (folder / ".rooignore").write_text("in"),
}


@pytest.mark.parametrize("data", [b"old", None], ids=["written", "deleted"])
@pytest.mark.parametrize("wrong", [None, *WRONG])
def test_what_is_unexpected_stays(wrong: str | None, data: bytes | None, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "in", outside):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("new")
        (folder / "a.txt").chmod(0o600)
    workspace = Workspace(root, heeds_ignore_files=True)
    expected = workspace.find_held("in/a.txt")
    if wrong is None:
        workspace.put_back("in/a.txt", expected, data, 0o755)
        if data is not None:
            assert (root / "in/a.txt").read_bytes() == data
            assert os.stat(root / "in/a.txt").st_mode & 0o7777 == 0o755
        assert (root / "in/a.txt").exists() is (data is not None)
        return
    WRONG[wrong](root, outside)
    before = {file: file.read_bytes() for file in tmp_path.rglob("a.txt")}
    with pytest.raises(ToolFailedError):
        workspace.put_back("in/a.txt", expected, data, 0o755)
    assert {file: file.read_bytes() for file in tmp_path.rglob("a.txt")} == before
    assert (outside / "a.txt").read_text() == "new"
