"""How the bytes of a file become text and back, so that nothing but the edit changes.

UTF-8 with or without a byte order mark, and UTF-16 with one. Bytes that are not UTF-8 become lone
surrogates, and are written back as they were.
"""

import codecs
from dataclasses import dataclass
from typing import Self

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import escape_invisible

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The encoding of a file, and how its lines end."""

    mark: bytes = b""
    encoding: str = "utf-8"
    has_crlf: bool = False
    """Whether every line ends with a carriage return too."""

    @classmethod
    def of(cls, data: bytes) -> Self:
        """The format of a file that begins with these bytes."""
        mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
        encoding = _MARKS.get(mark, "utf-8")
        count = data.count("\n".encode(encoding))
        crlf = data.count("\r\n".encode(encoding))
        return cls(mark, encoding, has_crlf=0 < count == crlf)

    def decode(self, data: bytes) -> str:
        """The text of the whole file; raises ``ToolFailedError``."""
        if self.encoding == "utf-8" and is_binary(data):
            raise ToolFailedError(f"is binary ({len(data)} bytes), which these tools do not edit")
        try:
            return data.removeprefix(self.mark).decode(self.encoding, self._errors)
        except UnicodeDecodeError as error:
            raise ToolFailedError(f"is not {self.encoding} text: {error.reason}") from None

    def decode_if_text(self, data: bytes) -> str | None:
        """The text of the whole file; None for a file that is not text."""
        try:
            return self.decode(data)
        except ToolFailedError:
            return None

    def encode(self, text: str) -> bytes:
        """The bytes of ``text``; its lines end as those of the file, unless they say how."""
        if self.has_crlf and "\r" not in text:
            text = text.replace("\n", "\r\n")
        return self.mark + text.encode(self.encoding, self._errors)

    @property
    def _errors(self) -> str:
        return "surrogateescape" if self.encoding == "utf-8" else "strict"


def is_binary(data: bytes) -> bool:
    """Whether it is not text: no text holds a NUL."""
    return b"\0" in data


def is_plain_utf8(data: bytes) -> bool:
    """Whether an editor can give and take it as text: no mark, no other encoding."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not data.startswith(codecs.BOM_UTF8) and not is_binary(data)


def is_utf8(text: str) -> bool:
    """Whether all of the file was UTF-8; what was not is a lone surrogate by now."""
    return not any("\udc80" <= character <= "\udcff" for character in text)


def show(text: str) -> str:
    r"""``text`` with what is not UTF-8 written as ``\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def show_name(name: str) -> str:
    """A file's name on one line, with what a reader would not see written out."""
    return escape_invisible(show(name))
