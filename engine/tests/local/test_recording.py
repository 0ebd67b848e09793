"""What ``make record`` records of a server of one's own: llama.cpp's."""

import os
import sys
from pathlib import Path

from tests.harness.programs import run_well
from tests.harness.root import ENGINE
from tests.harness.root import TEMPLATE as CLONE
from tests.local.conftest import StartLlama
from tests.local.narrowing import TEMPLATE, narrowing
from tests.local.templates import read_template
from tests.provider.script import call, say

TEST = "test_a_switch_at_a_server_of_ones_own"
FILE = ENGINE / "tests/graph/replay/test_own_server.py"
CASSETTE = CLONE / f"cassettes/test_own_server/{TEST}.yaml"
MENDED = "def add(a, b):\n    return a + b\n"
SCRIPT = [
    call("switch_mode", mode_slug="code", reason="add.py has to be changed."),
    call("write_file", path="add.py", content=MENDED),
    say("add.py adds now."),
]


def record(folder: Path, address: str, home: Path) -> str:
    """``make record`` with its cassettes in ``folder``; what the test's says then."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {
        "CONFIG_FOLDER": str(home),
        "T": TEST,
        "REAL": "1",
        "MODEL": "openai:local",
        "OPENAI_BASE_URL": address,
        "PYTEST_ADDOPTS": f"--cassettes={folder} -p no:cacheprovider {FILE}",
    }
    said = run_well(
        sys.executable, "-m", "modeshift.testing.record", cwd=CLONE, env=inherited | env
    )
    assert f"YOUR server {address}, as openai:local" in said
    return (folder / "test_own_server" / CASSETTE.name).read_text()


def test_a_conversation_is_recorded_alike_each_time(
    start_llama: StartLlama, tmp_path: Path
) -> None:
    """WRITE=1 writes the clone's cassette; which spaces stand in it may hang on the processor."""
    llama = start_llama(read_template(TEMPLATE), window=16384)
    first = CASSETTE.parents[1] if os.environ.get("WRITE") == "1" else tmp_path / "first"
    texts = []
    for folder in (first, tmp_path / "second"):
        with narrowing(llama, SCRIPT) as address:
            texts.append(record(folder, address, tmp_path))
            assert not [part for part in (address, str(ENGINE), llama.url) if part in texts[-1]]
    assert texts[0] == texts[1]
    assert "- llama.cpp" in texts[0]
