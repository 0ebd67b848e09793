"""Text that went through a web page or a chat: its blanks are not what they look like.

Roo Code cleans the whole file. Here it is the layout of YAML and the names: what a permission or a
``fileRegex`` says is left as it is.
"""

import re

# A line up to its first word, and behind its key.
_LAYOUT = re.compile(
    '^[ \u00a0\u200b\u2060\ufeff-]*(?:"?[\\w-]+"?:\u00a0+)?', re.MULTILINE | re.ASCII
)
_CLEANED = {0x00A0: " ", 0x200B: None, 0x200C: None, 0x2060: None, 0xFEFF: None}
# A joiner is part of many emoji, and of nothing else in a name.
_STRAY_JOINER = re.compile(r"\u200d(?=\w)|(?<=\w)\u200d|^\u200d|\u200d$")


def clean_layout(text: str) -> str:
    """``text`` with plain spaces where YAML takes nothing else."""
    return text if text.isascii() else _LAYOUT.sub(lambda found: found[0].translate(_CLEANED), text)


def clean_name(name: str) -> str:
    """``name`` without invisible characters and outer blanks."""
    return _STRAY_JOINER.sub("", name.translate(_CLEANED)).strip()
