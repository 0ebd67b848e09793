"""``python -m tests.mutants``: what has come of mutmut's mutants, by module.

Fails where fewer than ``LEAST`` of a hundred are caught, and where one of ``LOOKED_AT`` survives
for no reason that ``mutants.txt`` has.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.harness.root import ENGINE

FOUND = ENGINE / "mutants/modeshift"
REASONS = Path(__file__).with_suffix(".txt")
LEAST = 90
LOOKED_AT = ("modes/policy.py", "modes/phases.py", "calls/judging.py")
LEFT = ("survived", "untested")
OUTCOMES = {
    **dict.fromkeys((1, 3), "caught by a test"),
    37: "caught by mypy",
    **dict.fromkeys((-24, -9, 24, 36, 152, 255), "caught by time"),
    0: "survived",
    33: "untested",
}
"""By mutmut's exit codes; what is not here did not run."""


def load_reasons(text: str) -> dict[tuple[str, str], str]:
    """By module and changed line, why a mutant that survives does not matter."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    places = (line.partition(": ") for line in lines[::2])
    return {
        (module, change): reason
        for (module, _, change), reason in zip(places, lines[1::2], strict=True)
    }


def find_change(diff: str) -> str:
    """The line of a mutant that is another one, or is left out."""
    changed = [line[:1] + line[1:].strip() for line in diff.splitlines() if line[:1] in ("+", "-")]
    return next(line[1:] for line in sorted(changed) if line[1:3] not in ("++", "--", ""))


def show(mutant: str) -> str:
    """The mutant's diff."""
    command = [str(Path(sys.executable).with_name("mutmut")), "show", mutant]
    return subprocess.run(command, cwd=ENGINE, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """The exit code."""
    total = Counter[str]()
    reasons, left = load_reasons(REASONS.read_text(encoding="utf-8")), []
    for file in sorted(FOUND.rglob("*.meta")):
        module = file.relative_to(FOUND).as_posix().removesuffix(".meta")
        codes = json.loads(file.read_text())["exit_code_by_key"]
        outcomes = {mutant: OUTCOMES.get(code, "not run") for mutant, code in codes.items()}
        count = Counter(outcomes.values())
        total += count
        print(f"{module}: {describe(count)}")  # noqa: T201
        survivors = [mutant for mutant, outcome in outcomes.items() if outcome in LEFT]
        for mutant in survivors if module in LOOKED_AT else ():
            change = find_change(show(mutant))
            if (module, change) not in reasons:
                left.append(f"{mutant} survives: a test, or a reason in {REASONS.name}: {change}")
    print("\n".join([f"all: {describe(total)}", *left]))  # noqa: T201
    return 1 if left or find_rate(total) < LEAST else 0


def find_rate(count: Counter[str]) -> float:
    """How many of a hundred are caught."""
    caught = sum(number for outcome, number in count.items() if "caught" in outcome)
    return 100 * caught / max(count.total(), 1)


def describe(count: Counter[str]) -> str:
    """The rate and what it comes from."""
    parts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items()))
    return f"{find_rate(count):.1f} % caught ({parts})"


if __name__ == "__main__":
    sys.exit(main())
