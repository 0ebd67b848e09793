"""Routes that another distribution offers: one entry point, and the gate and the app have them."""

import os
import sys
from pathlib import Path

from tests.harness.place import environment
from tests.harness.programs import run_well
from tests.harness.root import TEMPLATE

MINE = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def show(request):
    return PlainTextResponse("mine")

ROUTES = [Route("/mine", show, methods=["GET"])]
"""
ASK = """
import asyncio
import httpx
from modeshift.server.app import app

async def main():
    inner = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=inner, base_url="http://127.0.0.1") as client:
        asked = ("GET", "/mine"), ("POST", "/mine"), ("GET", "/other")
        answers = [await client.request(*each) for each in asked]
        foreign = await client.get("/mine", headers={"origin": "https://evil.example"})
        print(answers[0].text, *(answer.status_code for answer in (*answers, foreign)))

asyncio.run(main())
"""


def test_one_entry_point_is_enough(tmp_path: Path) -> None:
    """One that does not load is missing, and nothing else is."""
    (tmp_path / "mine.py").write_text(MINE)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "broken = mine:NONE\nmine = mine:ROUTES\nworse = nowhere:ROUTES"
    (info / "entry_points.txt").write_text(f"[modeshift.routes]\n{points}\n")
    env = environment(tmp_path, PYTHONPATH=os.pathsep.join(map(str, (tmp_path, TEMPLATE))))
    said = run_well(sys.executable, "-c", ASK, cwd=TEMPLATE, env=env)
    assert said == "mine 200 404 404 403\n"
