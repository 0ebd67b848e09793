"""The providers that the clone knows: what each needs before it can be asked."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

TIMEOUT = 600.0
"""Seconds without a byte before a request is given up; Anthropic's client has no bound itself."""


@dataclass(frozen=True)
class Provider:
    """One provider; ``extra`` is its name in ``pyproject.toml``."""

    extra: str
    key: str | None = None
    """The variable with the key; None where there is none."""
    addresses: tuple[str, ...] = ()
    """The variables that send its requests to another server, the usual one last."""
    default_address: str = ""
    needs_key_elsewhere: bool = True
    """Whether a server at another address needs a key, too."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """For ``init_chat_model``."""
    by_model: Callable[[str, str | None], Mapping[str, Any]] = lambda _, __: {}
    """More of them, from the model and ``address``."""

    @property
    def example(self) -> str:
        """An address as it should be."""
        return self.default_address if self.key is None else "http://127.0.0.1:8080/v1"

    @property
    def package(self) -> str:
        """The distribution with its client."""
        return f"langchain-{self.extra}"

    def address(self) -> str | None:
        """The server that the environment names instead of the provider's own."""
        return next((found for name in self.addresses if (found := os.environ.get(name))), None)

    def problems(self) -> list[str]:
        """What is missing or malformed, each as the end of "it needs ..."."""
        found = []
        if find_spec(self.package.replace("-", "_")) is None:
            found.append(
                f"the extra {self.extra!r} of pyproject.toml, which is not installed "
                f"(remove .venv and start again, or: .venv/bin/uv pip install {self.package})"
            )
        key = os.environ.get(self.key or "", "")
        if self.key and not key and not self._is_keyless():
            other = (
                ""
                if self.needs_key_elsewhere
                else (f", or {self.addresses[-1]} for a server that wants no key")
            )
            found.append(f"{self.key} (set it in .env or in the environment{other})")
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            found.append(f"{self.key} without spaces, line breaks or other signs around it")
        for name in self.addresses:
            value = os.environ.get(name, "")
            if "@" in value or "?" in value:
                found.append(f"{name} without a user, a password or a query: logs would show it")
            elif not _is_address(value, bare=self.key is None):
                found.append(f"{name} to be a URL such as {self.example}, not {value!r}")
        return found

    def arguments(self, model: str) -> dict[str, Any]:
        """For ``init_chat_model``, beside the name."""
        given = {**self.parameters, **self.by_model(model, self.address())}
        if self.key and not os.environ.get(self.key):
            given["api_key"] = "none"  # the client wants one, the server does not
        return given

    def _is_keyless(self) -> bool:
        return not self.needs_key_elsewhere and self.address() is not None


def _is_address(value: str, *, bare: bool) -> bool:
    """Whether it names a server; ``bare``: ``host:port`` will do."""
    if not value:
        return True
    try:
        parsed = urlsplit(value if "://" in value or not bare else f"http://{value}")
        has_port = parsed.port is None or parsed.port > 0
    except ValueError:
        return False
    return has_port and parsed.scheme in ("http", "https") and bool(parsed.hostname)


_NO_REASONING = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-)|.*-chat\b")


def openai_api(model: str, address: str | None) -> dict[str, Any]:
    """Which of OpenAI's two APIs ``model`` is asked over, for ``init_chat_model``.

    At OpenAI the Responses API: its newest models take no tools over Chat Completions. Nothing
    is stored there, so what a model has reasoned comes encrypted, and goes back with the
    history. Anywhere else Chat Completions, which every server speaks, and whatever the model
    is called: LangChain would go by its name.
    """
    host = urlsplit(address or "https://api.openai.com").hostname or ""
    if host != "api.openai.com" and not host.endswith(".api.openai.com"):
        return {"use_responses_api": False}
    given: dict[str, Any] = {"use_responses_api": True, "store": False}
    if not _NO_REASONING.match(model):  # they answer 400
        given["include"] = ["reasoning.encrypted_content"]
    return given


# How often it is tried is for graph/models/retry.py to say.
_CLIENT = MappingProxyType({"max_retries": 0, "timeout": TIMEOUT})

PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        "anthropic",
        "ANTHROPIC_API_KEY",
        ("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"),
        parameters=_CLIENT,
    ),
    # The base URL of a local server (vLLM, llama.cpp, Ollama), which wants no key, or of a
    # service such as OpenRouter, which says so itself if the key is missing.
    "openai": Provider(
        "openai",
        "OPENAI_API_KEY",
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        needs_key_elsewhere=False,
        # LangChain would give a stream up where no word comes for two minutes of reasoning.
        parameters=MappingProxyType({**_CLIENT, "stream_chunk_timeout": TIMEOUT}),
        by_model=openai_api,
    ),
    "ollama": Provider(
        "ollama",
        addresses=("OLLAMA_HOST",),
        default_address="http://127.0.0.1:11434",
        parameters=MappingProxyType({"client_kwargs": {"timeout": TIMEOUT}}),
    ),
}
