"""One server, one scripted model and one browser for each file."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.doors.page.browser import PROBLEM, Person, Script, follow, opened
from tests.harness.server import Server, running
from tests.provider.server import KEY, serving

MODES = """\
customModes:
  - slug: scripted
    name: Scripted
    roleDefinition: You say what the script says.
    groups: [read, edit]
    model: openai:gpt-6.2
  - slug: evil
    name: "<img src=x onerror=window.ran=1> \\u05d0"
    description: "<script>window.ran=2</script>"
    roleDefinition: You are not nice.
    groups: [read]
"""


@pytest.fixture(scope="module")
def script() -> Script:
    """What the model of the file's server answers; to be added to."""
    return {}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, script: Script) -> Iterator[Server]:
    if PROBLEM:
        pytest.skip(PROBLEM)
    folder = tmp_path_factory.mktemp("clone")
    (folder / "home").mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    with serving(follow(script)) as provider:
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{provider.url}/v1"}
        with running(folder, **settings) as server:
            yield server


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with opened() as browser:
        yield browser


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    person = Person(browser, server.url).go()
    yield person
    person.check()
    person.close()
