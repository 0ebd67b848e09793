"""The fixture ``snapshot``: compares what people or models read with ``tests/snapshots``."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path

import pytest

from modeshift.project import find_root

Snapshot = Callable[[str, str | Mapping[str, str]], None]
CHANGING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "ID",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+\d\d:\d\d)?": "TIME",
    r"\b\d+\.\d s\b": "N s",
}


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Fails unless ``tests/snapshots`` has the text, or texts by heading, in a file of that name.

    With ``WRITE=1``, as `make snapshots` sets it, the file is written.
    """
    tests = next(folder for folder in request.path.parents if folder.name == "tests")
    paths = {str(tmp_path): "/somewhere", str(find_root()): "/clone", str(tests.parent): "/clone"}

    def compare(name: str, texts: str | Mapping[str, str]) -> None:
        if not isinstance(texts, str):
            named = ((repr(heading)[1:-1], text.rstrip()) for heading, text in texts.items())
            texts = "\n".join(f"==== {heading}\n{text}\n" for heading, text in named)
        for path, shown in {sys.executable: "python", **paths}.items():
            texts = texts.replace(path, shown)
        for pattern, shown in CHANGING.items():
            texts = re.sub(pattern, shown, texts)
        file = tests / "snapshots" / name
        if os.environ.get("WRITE") == "1":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(texts.encode())
        if not file.exists():
            pytest.fail(f"{file} is missing; `make snapshots` writes it", pytrace=False)
        known = file.read_bytes().decode()
        if known != texts:
            lines = unified_diff(
                known.splitlines(), texts.splitlines(), "known", "now", lineterm=""
            )
            diff = "\n".join(lines)
            pytest.fail(f"{file} has changed; is it meant? `make snapshots`\n{diff}", pytrace=False)

    return compare
