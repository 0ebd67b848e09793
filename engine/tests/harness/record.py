"""``make record``: record the cassettes anew.

T=pattern    only the tests that match, as in `make test`
SCRIPTED=1   of the scripted provider, whatever keys are set
YES=1        do not ask before the real services are used

Of a provider whose key is set the real service is recorded, which costs money; of the others
the scripted one. A cassette is written once its test has passed.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from dotenv import find_dotenv, load_dotenv

from tests.harness.recording import KEYS, MODELS
from tests.harness.selection import IN_VAIN, find_files, list_tests

ALREADY_IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""What pytest would look at again is part of what this module imports."""


def main(env_file: Path | None = None) -> int:
    """Say what is recorded, ask where it costs, run the tests; gives the exit code."""
    load_dotenv(env_file or find_dotenv(usecwd=True), override=False)
    options = options_for_pytest()
    if options is None:
        return 1
    pattern = os.environ.get("T")
    try:
        files = find_files(pattern) if pattern else [*_list_files()]
        code = pytest.main([*options, "-W", ALREADY_IMPORTED, *map(str, files)])
    except LookupError:
        code = IN_VAIN
    if code == IN_VAIN:
        sys.stderr.write(
            f"No test that has a cassette (it uses `begin` or `recorded`) matches T={pattern!r}.\n"
        )
    return code


def _list_files() -> Iterator[Path]:
    return (path for path in list_tests() if {"begin", "recorded"} & _read_words(path))


def _read_words(path: Path) -> set[str]:
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def options_for_pytest() -> list[str] | None:
    """Or None where something would cost, and nobody wants that."""
    real = [name for name, key in KEYS.items() if os.environ.get(key) and not _is_on("SCRIPTED")]
    for name, model in MODELS.items():
        source = "the REAL service" if name in real else "the scripted provider"
        key = KEYS.get(name, "")
        is_set = f"{key} is {'set' if os.environ.get(key) else 'not set'}" if key else "no service"
        sys.stdout.write(f"{name:<10} {source}, as {model} ({is_set})\n")
    sys.stdout.flush()
    if real and not _may_spend(real):
        return None
    pattern = os.environ.get("T")
    return [
        # Without a pattern no test that talks to anything else than a model.
        *("-m", "vcr" if pattern else "conversation", "--record-mode=all", "--verbose"),
        *(["-k", pattern] if pattern else []),
        *(f"--real={name}" for name in real),
    ]


def _may_spend(real: list[str]) -> bool:
    if _is_on("YES"):
        return True
    if not sys.stdin.isatty():
        sys.stderr.write(
            f"This would send prompts to {' and '.join(real)} and cost money, and nobody is here "
            "to ask: set YES=1, or SCRIPTED=1.\n"
        )
        return False
    question = f"This sends prompts to {' and '.join(real)} and costs money. Go on? [y/N] "
    sys.stdout.write(question)
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return True
    sys.stdout.write("Nothing recorded. SCRIPTED=1 records the scripted provider.\n")
    return False


def _is_on(name: str) -> bool:
    return os.environ.get(name) == "1"


if __name__ == "__main__":
    sys.exit(main())
