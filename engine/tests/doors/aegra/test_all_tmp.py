from tests.doors.conftest import client, http  # noqa
from tests.doors.server.test_server import *  # noqa
from tests.doors.server.test_thread_modes import *  # noqa
