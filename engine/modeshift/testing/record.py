"""``make record``: record the cassettes of a clone's tests anew.

T=pattern    only the tests that match, as in `make test`
SCRIPTED=1   of the scripted provider, whatever is set
REAL=1       do not ask before money is spent

Of a provider whose key is set the real service is recorded, which costs money; else Anthropic's is
scripted. A cassette is written once its test has passed.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from dotenv import load_dotenv

from modeshift.configuration.settings import get_env_file
from modeshift.models.providers import PROVIDERS, is_at_openai


def main(env_file: Path | None = None) -> int:
    """Say what is recorded, ask where it costs, run the tests; gives the exit code."""
    load_dotenv(env_file or get_env_file(), override=False)
    options = options_for_pytest()
    if options is None:
        return 1
    pattern = os.environ.get("T")
    code = pytest.main([*options, "-m", "recorded", *(["-k", pattern] if pattern else [])])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        sys.stderr.write(f"No test that has a cassette (`recorded`) matches T={pattern!r}.\n")
    return code


def options_for_pytest() -> list[str] | None:
    """Or None where something would cost, and nobody wants that."""
    real = {} if _is_on("SCRIPTED") else _list_real()
    for name, key in real.items():
        sys.stdout.write(f"the REAL {name}, as {key} is set\n")
    if "anthropic" not in real:
        sys.stdout.write("anthropic: the scripted provider\n")
    sys.stdout.flush()
    if real and not _may_spend([*real]):
        return None
    return [f"--record={'real' if real else 'scripted'}", "--verbose"]


def _list_real() -> dict[str, str]:
    """The services whose key is set; OpenAI's is another server's where one is named."""
    keys = {name: provider.key for name, provider in PROVIDERS.items() if provider.key}
    is_openais = is_at_openai(PROVIDERS["openai"].address())
    return {
        name: key
        for name, key in keys.items()
        if os.environ.get(key) and (name != "openai" or is_openais)
    }


def _may_spend(real: list[str]) -> bool:
    if _is_on("REAL"):
        return True
    if not sys.stdin.isatty():
        sys.stderr.write(
            f"This would send prompts to {' and '.join(real)} and cost money, and nobody is here "
            "to ask: set REAL=1, or SCRIPTED=1.\n"
        )
        return False
    question = f"This sends prompts to {' and '.join(real)} and costs money. Go on? [y/N] "
    with suppress(KeyboardInterrupt, EOFError):
        if input(question).strip().lower() in ("y", "yes"):
            return True
    sys.stdout.write("Nothing recorded. SCRIPTED=1 records the scripted provider.\n")
    return False


def _is_on(name: str) -> bool:
    return os.environ.get(name) == "1"


if __name__ == "__main__":
    sys.exit(main())
