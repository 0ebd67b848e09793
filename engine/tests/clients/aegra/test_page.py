"""The page in a browser, on Aegra, by the page's own tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.clients.page.browser import Script, follow
from tests.clients.page.conftest import MODES, open_browser, person, script
from tests.clients.page.test_page import (
    test_cancel_rename_delete,
    test_each_decision,
    test_the_first_conversation,
)
from tests.clients.page.test_page_runs import (
    test_a_message_is_kept_until_the_run_has_ended,
    test_what_one_has_stopped_is_no_alarm,
)
from tests.clients.page.test_page_threads import test_a_message_is_edited_and_run_again
from tests.harness.aegra import AegraServer, serving
from tests.provider import server as provider_server

pytestmark = pytest.mark.slow
browser = pytest.fixture(scope="module", name="browser")(open_browser)


@pytest.fixture(scope="module")
def server(
    browser: Browser,  # or it is skipped
    tmp_path_factory: pytest.TempPathFactory,
    database: str,
    script: Script,
) -> Iterator[AegraServer]:
    folder = tmp_path_factory.mktemp("clone")
    (folder / "home").mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    with (
        provider_server.serving(follow(script)) as provider,
        serving(folder, database, 2, **provider.settings) as server,
    ):
        yield server
