"""Changes of mode in an editor, with models that bind what they thought."""

import asyncio
from pathlib import Path

import pytest

from tests.doors.editor.editor import Talk, choosing, editing, never
from tests.graph.journey import CLAUDE, GPT, answer, check_requests, list_thoughts
from tests.provider.server import serving

pytestmark = pytest.mark.slow


async def test_thoughts_outlive_switches_and_the_process(tmp_path: Path, workspace: Path) -> None:
    """ask, architect, code, ask, code, with a rejected switch, a mode that is chosen, a kill -9."""
    (workspace / "a.txt").write_text("a")
    with serving(answer) as provider:
        settings = {
            "MODEL": GPT,
            "MODELS": CLAUDE,
            "MODEL_PARAMETERS": '{"use_responses_api": true}',
            **provider.settings,
        }
        talks: dict[str, Talk] = {}
        async with editing(tmp_path, settings) as editor:
            for name, model in (("Claude", CLAUDE), ("GPT", GPT)):
                talk = talks[name] = await editor.talk(workspace, model=model)
                editor.answer = choosing("manual", "manual", "once")
                await talk.say(f"{name}: read_file a.txt, mode architect, mode code, write_file b")
                await talk.choose("mode", "ask")
                editor.answer = choosing("reject")
                await talk.say("And now: read_file b, mode code")
                assert talk.shown == ("ask", "manual")
                await talk.choose("mode", "code")
            editor.answer = never
            turns = [asyncio.create_task(talk.say("More: write_file c")) for talk in talks.values()]
            await editor.until(lambda: len(editor.asked) == 10)
            editor.process.kill()
            await asyncio.gather(*turns, return_exceptions=True)
        async with editing(tmp_path, settings, choosing("once")) as editor:
            for before in talks.values():
                talk = await editor.load(before)
                assert "You are in" not in talk.said
                await talk.say("End: write_file d")
        for name in talks:
            requests = [one for one in provider.requests if f"{name}: " in str(one.body)]
            check_requests(provider, requests)
            assert len(list_thoughts(requests[-1])) == len(requests) - 1
            assert all(one.body["stream"] for one in requests), "on the server they are whole"
