"""What is said when a model does not answer."""

import httpx2
import pytest
from langchain_core.exceptions import ModelTimeoutError

from modeshift.models.provider_errors import is_worth_another_try, provider_error
from modeshift.testing.plugin import Snapshot


def of_mistral(status: int) -> Exception:
    request = httpx2.Request("POST", "http://127.0.0.1:1")
    response = httpx2.Response(status, headers={"retry-after": "7"}, request=request)
    return httpx2.HTTPStatusError("no", request=request, response=response)


def test_errors_that_may_pass(snapshot: Snapshot) -> None:
    """Also those of clients without LangChain's classes: Ollama's, Mistral's; the last may not."""
    errors = [
        *(ModelTimeoutError("Request timed out."), TimeoutError(), httpx2.ReadTimeout("")),
        *(httpx2.ConnectError("All failed"), of_mistral(529), of_mistral(429), ValueError("no")),
    ]
    assert [is_worth_another_try(error) for error in errors] == [True] * 6 + [False]
    told = [str(provider_error(error, "ollama:qwen3", 3, has_begun=False)) for error in errors]
    snapshot("provider-errors.txt", "".join(f"{text}\n" for text in told))


@pytest.mark.parametrize("before", ["", "x" * 590, "x1" * 9_900])
def test_no_error_holds_a_secret(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Not even if the text is cut in the middle of it."""
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("DATABASE", "postgresql://me:staple-of-mine@localhost/db")
    error = RuntimeError(f"{before} correct-horse-battery staple-of-mine sk-or-v1-0123456789abcdef")
    said = str(provider_error(error, "openai:x", 1, has_begun=False))
    for part in ("correct", "staple", "sk-or"):
        assert part not in said
