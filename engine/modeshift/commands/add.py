"""``make add``: adds another part of the engine to ``pyproject.toml``."""

import re
from collections.abc import Iterator
from importlib.metadata import metadata

from modeshift.modes.errors import ConfigurationError
from modeshift.project import ENGINE, find_root

NAMED = re.compile(rf"""(?<=["']){ENGINE}(?:\[([^]"']*)\])?(?=[ <>=!~;@"'])""")


def main(extra: str | None = None) -> Iterator[str]:
    """Add a part, or list the parts; raises ``ConfigurationError`` if there is no such part."""
    file = find_root() / "pyproject.toml"
    text = file.read_text(encoding="utf-8")
    # What make serve needs is in an environment of its own.
    offered = sorted({*(metadata(ENGINE).get_all("Provides-Extra") or [])} - {"aegra"})
    found = NAMED.search(text)
    if found is None:
        raise ConfigurationError(f"{file} does not name {ENGINE} as a dependency: add it")
    chosen = [name.strip() for name in (found[1] or "").split(",") if name.strip()]
    rest = [name for name in offered if name not in chosen]
    if extra is None:
        yield f"here:  {', '.join(chosen)}"
        yield f"more:  {', '.join(rest)}; make add EXTRA={rest[0] if rest else 'name'}"
    elif extra in chosen:
        yield f"{extra} is here already"
    elif extra not in offered:
        raise ConfigurationError(
            f"EXTRA={extra!r} is no part of the engine; there are: {', '.join(offered)}"
        )
    else:
        line = f"{ENGINE}[{','.join([*chosen, extra])}]"
        file.write_text(text[: found.start()] + line + text[found.end() :], encoding="utf-8")
        yield f"{file.name}: {line}"
