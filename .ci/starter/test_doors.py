"""The webhook of docs/own/doors.md as a real server: with the agent in it, and beside another."""

import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pages import read_part
from repository import copy_project, has_clone

from modeshift import APPROVE
from tests.harness.place import environment
from tests.harness.root import ENGINE
from tests.harness.server import free_port, running

SECRET = "a secret of both"  # noqa: S105
MAX_LINES = 60


class Webhook:
    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, secret: str = SECRET, **body: Any) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode()
        signature = hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
        answer = httpx.post(self.url, content=data, headers={"x-signature": signature}, timeout=120)
        return answer.status_code, answer.json()

    def is_up(self) -> bool:
        try:
            return httpx.get(self.url).status_code == httpx.codes.METHOD_NOT_ALLOWED
        except httpx.TransportError:
            return False


@pytest.fixture(params=["in this process", "beside a server"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Where the agent works, and the address of its server if it has one."""
    if request.param == "in this process":
        yield tmp_path / "clone/workspace", ""
        return
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as server:
        yield server.workspace, server.url


def test_a_webhook_is_one_short_file(workspace: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = workspace
    clone, port = tmp_path / "clone", free_port()
    copy_project(clone, wanted=has_clone)
    text = read_part("webhook")
    assert len(text.splitlines()) <= MAX_LINES
    (clone / "webhook.py").write_text(text)
    given = {"WEBHOOK_SECRET": SECRET, "MODES_FOLDER": str(clone / "modes")}
    given |= {"PYTHONPATH": f"{clone}:{ENGINE}", **({"AGENT": address} if address else {})}
    command = [sys.executable, "-m", "uvicorn", "webhook:app", "--port", str(port)]
    with subprocess.Popen(command, cwd=clone, env=environment(clone, **given)) as process:
        try:
            hook = Webhook(f"http://127.0.0.1:{port}")
            while not hook.is_up():
                assert process.poll() is None
                time.sleep(0.1)
            assert hook.post("another", conversation="1", text="hello")[0] == 401
            status, said = hook.post(conversation="1", text="hello")
            assert (status, [*said]) == (200, ["text"])
            asked = hook.post(conversation="1", text="switch to code: for a file")
            assert "waits" in asked[1], asked
            for wrong, status in (
                ({"question": "another", "decisions": [APPROVE]}, 409),
                ({"question": asked[1]["question"], "decisions": [{"type": "obey"}]}, 422),
                ({"question": asked[1]["question"]}, 422),
                ({}, 422),
            ):
                assert hook.post(conversation="1", **wrong)[0] == status, wrong
            answer = {"question": asked[1]["question"], "decisions": [APPROVE]}
            assert "text" in hook.post(conversation="1", **answer)[1]
            assert hook.post(conversation="1", **answer)[0] == 409
            assert hook.post(conversation="2", **answer)[0] == 409
            asked = hook.post(conversation="1", text="write a.txt: hello")
            assert "a.txt" in asked[1]["waits"][0], "what is approved is told"
            assert not (folder / "a.txt").exists()
            answer = {"question": asked[1]["question"], "decisions": [APPROVE]}
            assert "text" in hook.post(conversation="1", **answer)[1]
            assert (folder / "a.txt").read_text() == "hello"
        finally:
            process.terminate()
