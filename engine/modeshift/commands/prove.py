"""``make prove``: checks what must be true in every configuration of the modes as they are."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from json import dumps
from pathlib import Path
from time import process_time

from modeshift.configuration.last_loaded import read_user_file
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.files import NO_MODES, PROPERTIES
from modeshift.modes.plain_text import make_readable
from modeshift.proof.prove import Proof, prove, read_own


def main(*, json: bool = False) -> list[str]:
    """The report; exits with 1 if a property is broken. Raises ``UserError``."""
    settings = load_settings()
    deps = AgentLoader(settings).deps()
    for notice in deps.notices:
        print(f"modeshift: {notice}", file=sys.stderr)
    loaded = {name for mode in deps.catalog.values() for name in (mode.slug, Path(mode.file).stem)}
    files = {file for file in settings.modes_folder.glob("*.yaml") if file.stem not in loaded}
    if lost := {file.name for file in files} - {*NO_MODES}:
        raise ConfigurationError(
            f"{', '.join(sorted(lost))}: has no mode that could be loaded, so nothing is proved; "
            "the notice above says why"
        )
    file = settings.modes_folder / PROPERTIES
    own = read_own(deps, read_user_file(file) or "", f"{file.parent.name}/{PROPERTIES}")
    proof = prove(deps, own)
    report = dumps(asdict(proof), indent=1) if json else "\n".join(_report(proof))
    if not proof.holds:
        print(make_readable(report))
        sys.exit(1)
    return [report]


def _report(proof: Proof) -> Iterator[str]:
    broken = sum(bool(result.problem) for result in proof.results)
    count = len(proof.results)
    yield f"{broken} of {count} properties are BROKEN" if broken else f"all {count} properties hold"
    for result in proof.results:
        yield f"{'BROKEN' if result.problem else 'proved'}  {result.name}"
        if result.problem:
            yield f"        {result.problem}"
        yield from (f"        {number}. {step}" for number, step in enumerate(result.steps, 1))
    yield (
        f"{proof.configurations:,} configurations and {proof.transitions:,} transitions in "
        f"{process_time():.1f} s; {proof.reduction}"
    )
