"""What is taken for a secret and never written to a cassette. The keys are made up as it runs."""

import random
import re
import time
from base64 import b64encode
from string import ascii_letters, ascii_lowercase, digits

import pytest

from modeshift.models.provider_errors import MASK, find_secrets, mask_secrets
from modeshift.testing.cassette_format import join_stream, keep_headers, scrub
from tests.tables import rows

ALPHABETS = {
    "A": ascii_letters + digits,
    "D": digits,
    "H": "0123456789abcdef",
    "L": ascii_lowercase + digits,
    "U": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}
# {A20} stands for 20 letters and digits, {H..} for hexadecimal ones, {B..} for bytes in Base64.
PREFIXED = """
    sk-{A20}T3BlbkFJ{A20} sk-proj-{A74}T3BlbkFJ{A74} sk-svcacct-{A74}T3BlbkFJ{A74}
    org-{A24}1 proj_{A24}1 sk-ant-api03-{A93}AA sk-ant-admin01-{A93}AA sk-or-v1-{H64}
    sk-{H32} gsk_{A52} xai-{A80} hf_{A34} AIza{A35} GOCSPX-{A28} ya29.{A60} r8_{A37}
    nvapi-{A64} lsv2_pt_{H32}_{H10} sk_{H48} AKIA{U16} ASIA{U16}
    AccountName=abcdef;AccountKey={B64};EndpointSuffix=core.windows.net
    https://a.blob.core.windows.net/c?sv=2022-11-02&sig={A43}%3D ghp_{A36} ghs_{A36}
    github_pat_{A22}_{A59} glpat-{A20} xoxb-{D12}-{D12}-{A24} xapp-1-A{U10}-{D13}-{H64}
    https://hooks.slack.com/services/T{U8}/B{U8}/{A24} sk_live_{A24} rk_live_{A24}
    whsec_{A32} SG.{A22}.{A43} key-{H32} npm_{A36} pypi-AgEIcHlwaS5vcmc{A80} dckr_pat_{A27}
    dop_v1_{H64} shpat_{H32} ntn_{A46} figd_{A40} glsa_{A32}_{H8} hvs.{A95} PMAK-{H24}-{H34}
    sbp_{H40} eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{A43} DB_PASSWORD={A24}
"""
"""Those that say by themselves whose they are."""
OTHERS = """
perplexity        | pplx-{A48}
telegram          | 1{D9}:AA{A33}
terraform         | {A14}.atlasv1.{A67}
private key       | -----BEGIN RSA PRIVATE KEY-----{B48}
netrc             | machine example.org login ann password {A20}7
database          | postgres://ann:{A16}@db.example.org:5432/x
key in a url      | https://example.org/v1/models?key={A39}&alt=sse
"""
"""Some of those that only the scanner knows, or that stand in a text."""
FORMATS = [*PREFIXED.split(), *OTHERS.strip().splitlines()]
NO_SECRETS = """
    src/user_repository_factory.py key-value-store-backend-2 pk_constraint_violation_x1
    req_of_a_person_whom_nobody_knows a-task-list-of-many-many-words call_0123456789abcdefghijklmn
    toolu_01A2b3C4d5E6f7G8h9 chatcmpl-0123456789abcdefghij msg_0123456789abcdefghijklmnop
    resp_7qFpuj9YC1lLQwPGSVlmxgpHDhjAtTqClGpTORP4 fc_5b5ekbyHVq2FZFL3p3H1XKcw7LyMO9phMB3UH6UO
    the basic configuration, a basic understanding; password: see the wiki. secret = get_secret()
    max_tokens: 128000 https://docs.python.org:443/3/library/re.html?highlight=keyboard
    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 sk_a_mode_of_the_project
"""


def make(template: str, seed: int = 7) -> tuple[str, str]:
    """A made-up key, and the longest part of it that is by chance."""
    by_chance = random.Random(seed)
    parts: list[str] = []

    def choose(found: re.Match[str]) -> str:
        count = int(found[2])
        if found[1] == "B":
            parts.append(b64encode(by_chance.randbytes(count)).decode())
        else:
            parts.append("".join(by_chance.choices(ALPHABETS[found[1]], k=count)))
        return parts[-1]

    return re.sub(r"\{([ABDHLU])(\d+)\}", choose, template), max(parts, key=len)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.partition("|")[0].strip())
def test_formats_of_secrets(row: str) -> None:
    for seed in range(3):
        secret, part = make(row.rpartition("| ")[2], seed)
        left = scrub(f"He said: {secret} is mine.")
        assert left.startswith("He said: ")
        assert MASK in left
        assert part not in left


@pytest.mark.parametrize("template", ["ghp_{A36}", "sk-ant-api03-{A93}AA", "glpat-{A20}"])
def test_a_secret_in_base64(template: str) -> None:
    encoded = b64encode(f"the token is {make(template)[0]}".encode()).decode()
    assert encoded not in scrub(f"He said: {encoded} is mine.")


def test_what_looks_like_a_secret() -> None:
    for text in (*NO_SECRETS.split(), *NO_SECRETS.strip().splitlines()):
        assert scrub(text) == text
    start = time.process_time()
    mask_secrets("x1" * 20_000)
    assert time.process_time() - start < 5


def test_what_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in {
        "MY_API_KEY": "correct-horse-battery",
        "my_password": "in lower case",
        "AUTH_TOKEN": "ann:ann-has-this-one,bob:bob-has-this-one",
        "GITHUB_PAT": "personal-one",
        "DB_PWD": "p&ssw:rd",
        "SOME_KEYS": "first-of-them second-of-them",
        "REGISTRY_AUTH": "for the registry",
        "A_TOKEN": "short",
        "KEYBOARD": "no secret at all",
        "PWD": "/where/it/runs",
    }.items():
        monkeypatch.setenv(name, secret)
    value = [{"a": ["my correct-horse-battery", 1, None]}, "in lower case", "ann-has-this-one"]
    assert scrub(value, (), find_secrets()) == [{"a": [f"my {MASK}", 1, None]}, MASK, MASK]
    for text in ("personal-one", "p&ssw:rd", "p%26ssw%3Ard", "second-of-them", "for the registry"):
        assert scrub(f"a {text} b", (), find_secrets()) == f"a {MASK} b"
    encoded = b64encode(b"correct-horse-battery").decode()
    assert scrub(f"a {encoded} b", (), find_secrets()) == f"a {MASK} b"
    assert scrub("short, no secret at all /where/it/runs", (), find_secrets()).count(MASK) == 0
    assert scrub("my correct-horse-battery") == "my correct-horse-battery"
    assert scrub("/at/pytest-7/a.py", (("/at/pytest-7", "/somewhere"),)) == "/somewhere/a.py"
    headers: list[tuple[str, str | list[str]]]
    headers = [("Content-Type", ["a", "b"]), ("X-Api-Key", "secret"), ("Retry-After", "1")]
    assert keep_headers(headers) == {"content-type": ["a", "b"], "retry-after": ["1"]}


@rows(
    "event",
    '{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": N, "function": '
    '{"arguments": "TEXT"}}]}}]}',
    '{"type": "content_block_delta", "index": N, "delta": {"partial_json": "TEXT"}}',
    '{"type": "response.function_call_arguments.delta", "output_index": N, "delta": "TEXT"}',
    '{"choices": [{"index": N, "delta": {"content": "TEXT"}}]}',
)
def test_a_key_cut_over_two_streams(event: str) -> None:
    """The arguments of two calls, or two answers, whose pieces come in turns."""
    key, _ = make("sk-ant-api03-{A93}AA")
    other, _ = make("glpat-{A20}", 1)
    events = []
    for at in range(0, len(key), 5):
        for number, text in enumerate((key, other)):
            piece = event.replace("N", str(number)).replace("TEXT", text[at : at + 5])
            events.append(f"data: {piece}\n\n")
    stream = "".join(events)
    assert scrub(stream) == stream, "no piece shows it"
    assert {key, other} <= {text for text in join_stream(stream) if scrub(text) == MASK}
