"""llama.cpp's own server on loopback, with a model of one block; ``set_up.sh`` installs both.

The tokenizer, the chat template, the errors and the KV cache are the real ones. What the model says
is nonsense, so there are two ways to talk to it:

- ``running(template, window)`` is the server itself: ``Llama.settings`` is the environment with
  which OpenAI's client goes there, ``Llama.ask("/props")`` and ``Llama.ask(path, body)`` ask it.
  Words come whatever is asked; an answer takes milliseconds with ``max_tokens``. Calls that are
  valid come with ``"tool_choice": "required"`` under meetkai-functionary-medium-v3.2, whose
  grammar allows nothing else; most templates allow words before a call, and these never end.
- ``speaking(llama, script)`` is a server before it, for ``use`` of ``model_thread``. It gives the
  answers of ``script``, a list of steps or a driver as in ``tests.provider.script``. Each request
  goes to the real server first, as it is but for one token to answer, and is refused as that
  refuses it. ``Front.inputs`` has what the real one counted of those that were answered: all
  tokens, and those from its cache. ``Front.failures`` has what was refused: status and body.

The fixture ``start_llama`` is ``running`` for a test; without ``.venv-local`` the test is skipped.
``tests.local.templates`` has the chat templates.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from typing_extensions import override

from tests.harness.root import ENGINE
from tests.provider.prompt_cache import Input
from tests.provider.script import Driver, Failure, Ids, Step
from tests.provider.server import ScriptedProvider, listening

LOCAL = ENGINE / ".venv-local"
SECONDS = 120
"""A wait that does not end is a failure."""


def is_installed() -> bool:
    return (LOCAL / ".ready").exists()


@dataclass(frozen=True)
class Llama:
    """A server that runs."""

    url: str
    window: int
    end: Callable[[], None]
    """At once, whatever it is doing."""

    @property
    def settings(self) -> dict[str, str]:
        """The environment with which OpenAI's client comes here; any model's name will do."""
        return {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": f"{self.url}/v1"}

    def ask(self, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """The status and the body of its answer; a ``body`` is posted."""
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, {"content-type": "application/json"})
        try:
            with urlopen(request, timeout=SECONDS) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            with error:
                return error.code, json.load(error)

    def count(self, text: str) -> int:
        """Its tokens."""
        return len(self.ask("/tokenize", {"content": text})[1]["tokens"])


@contextmanager
def running(template: str = "", window: int = 8192) -> Iterator[Llama]:
    """A server with this chat template, or the model's own, which is ChatML without tools."""
    options = {
        "model": str(LOCAL / "one_block.gguf"),
        "template": template,
        "window": window,
        "threads": 1,
    }
    program = str(ENGINE / "tests/local/serve.py")
    # Isolated, as PYTHONPATH is that of the tests' own environment.
    command = [str(LOCAL / "bin/python"), "-I", program, json.dumps(options)]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                log.seek(0)
                raise RuntimeError(log.read())
            yield Llama(url, window, process.kill)
        finally:
            process.stdin.close()
            process.kill()


_NONSENSE = "The model produced output that does not match the expected"
"""An error behind the input, which was taken: some templates want an answer of a certain form."""


class _Ids(Ids):
    """As llama.cpp gives them to calls: 32 letters, which say nothing."""

    @override
    def new(self, prefix: str, length: int) -> str:
        return super().new("", 32) if prefix == "call_" else super().new(prefix, length)


class Front(ScriptedProvider):
    """Says what a script wants, where ``llama`` takes the request."""

    def __init__(self, llama: Llama, script: Sequence[Step] | Driver) -> None:
        super().__init__(script)
        self.llama = llama
        self.ids = _Ids()
        self.failures: list[tuple[int, dict[str, Any]]] = []
        """What the server refused: status and body."""
        self._counted = Input()

    def ask_other(self, body: dict[str, Any]) -> Failure | None:
        answered = {**body, "stream": False, "max_tokens": 1}
        answered.pop("stream_options", None)
        status, answer = self.llama.ask("/v1/chat/completions", answered)
        if _NONSENSE in str(answer):
            self._counted = Input()
            return None
        if status != 200:
            self.failures.append((status, answer))
            return Failure("request", as_sent=(status, answer))
        usage = answer["usage"]
        read = usage["prompt_tokens_details"]["cached_tokens"]
        self._counted = Input(usage["prompt_tokens"] - read, read)
        return None

    def take(self, wire: ModuleType, body: dict[str, Any], step: Step) -> Input:
        self.inputs.append(self._counted)
        return self._counted

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        return self.llama.ask(path)


@contextmanager
def speaking(llama: Llama, script: Sequence[Step] | Driver) -> Iterator[Front]:
    """A server before ``llama``, until the block ends."""
    front = Front(llama, script)
    with listening(front.server):
        yield front
