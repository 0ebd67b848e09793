"""Text of strangers among text of ours: what may stand there, and how it is shown."""

# Blanks that count as printable; with them, words are pushed out of a reader's sight.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# What joins or colours the picture characters that people put into names.
_IN_PICTURES = frozenset("\u200d\ufe0f")


def is_plain(text: str) -> bool:
    """Whether a reader sees all of it, in its order, on one line."""
    return all(map(_is_plain, text))


def plain(text: str, limit: int = 300) -> str:
    """``text`` on one line, what a reader would not see written out, cut at ``limit``."""
    shown = escaped(" ".join(text.split())[:limit])
    return shown if len(text) <= limit else f"{shown}..."


def escaped(text: str) -> str:
    """``text``, what a reader would not see written out; its blanks stay."""
    return "".join(c if _is_plain(c) else f"\\u{ord(c):04x}" for c in text)


def _is_plain(character: str) -> bool:
    if character in _IN_PICTURES:
        return True
    return character.isprintable() and character not in _BLANKS
