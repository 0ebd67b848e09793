"""Found by way of PYTHONPATH by each Python process that a test starts: no network for it.

What the dev server does in uvloop, which has sockets of its own, is out of its reach.
"""

import importlib.util
from pathlib import Path

_file = Path(__file__).parents[3] / "modeshift/testing/loopback.py"
_spec = importlib.util.spec_from_file_location("loopback", _file)
assert _spec is not None
assert _spec.loader is not None
_loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_loopback)
_loopback.block_network(setattr)
