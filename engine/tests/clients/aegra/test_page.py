"""The page in a browser, on Aegra, by the page's own tests."""

import pytest
from playwright.sync_api import Browser

from tests.clients.page.conftest import open_browser, person
from tests.clients.page.test_page import (
    test_cancel_rename_delete,
    test_the_first_conversation,
)
from tests.clients.page.test_page_threads import test_a_message_is_edited_and_run_again
from tests.harness.aegra import AegraServer

pytestmark = pytest.mark.slow
browser = pytest.fixture(scope="module", name="browser")(open_browser)


@pytest.fixture
def server(browser: Browser, own_server: AegraServer) -> AegraServer:
    """Or it is skipped, where there is no browser."""
    return own_server
