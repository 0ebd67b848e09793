"""What a process leaves out while it imports, and that it does so no longer than that."""

import json
import subprocess
import sys
from pathlib import Path

from tests.clients.editor.test_start import COMMAND
from tests.clients.editor.test_wire import INITIALIZE
from tests.harness.place import environment
from tests.harness.root import TEMPLATE

WATCH = """
import atexit, gc, json, sys

class Watch:
    looked = {}
    def find_spec(self, name, path=None, target=None):
        self.looked.setdefault(name, gc.isenabled())

def tell():
    looks = gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 100_000
    told = {"end": looks, "imports": Watch.looked.get("langgraph.graph")}
    print(json.dumps(told), file=sys.stderr)

sys.meta_path.insert(0, Watch())
atexit.register(tell)
"""
LOOKS_RARELY = {"end": [True, 50_000, True], "imports": False}
"""For dead objects: not while it imports, and rarely then, only among what is new."""


def watched(folder: Path) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(WATCH)
    paths = f"{folder}:{TEMPLATE}"
    return environment(folder, PYTHONPATH=paths, WORKSPACE=str(folder), MODEL="offline")


def test_a_command_looks_for_garbage_once_it_has_its_imports(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "modeshift", "diagram"], cwd=TEMPLATE, env=watched(tmp_path),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "stateDiagram" in done.stdout
    assert json.loads(done.stderr) == LOOKS_RARELY


def test_an_editors_process_does_so_with_its_first_session(tmp_path: Path) -> None:
    new = {"method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    messages = INITIALIZE, {"jsonrpc": "2.0", "id": 2, **new}
    with subprocess.Popen(
        [COMMAND, "--project", TEMPLATE], env=watched(tmp_path), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "result" in answer
        _, errors = process.communicate()
    assert json.loads(errors.splitlines()[-1]) == LOOKS_RARELY
