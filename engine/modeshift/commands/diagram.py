"""``make diagram``: the state machine of the modes, the user's own included, as Mermaid."""

import sys
from collections.abc import Iterator

from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import load_settings


def main() -> Iterator[str]:
    """The diagram; raises ``UserError``."""
    deps = AgentLoader(load_settings()).deps()
    for notice in deps.notices:
        print(f"modeshift: {notice}", file=sys.stderr)
    yield deps.machine.chart.mermaid()
