"""``ChatCompleter``: the commands and modes behind ``/``, the project's files behind ``@``."""

import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from modeshift.modes.plain_text import is_plain
from modeshift.tools.workspace.ripgrep import program

SECONDS = 5
MAX_FILES = 50_000
MAX_OFFERED = 50


class ChatCompleter(Completer):
    """Lists the files when a completion first needs them, and again after some seconds."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self.list_commands: Callable[[], Mapping[str, str]] = dict
        """Returns the modes and commands behind ``/``, each with a sentence."""
        self._files, self._read = list[str](), -SECONDS * 1.0

    @override
    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        text = document.text_before_cursor
        word = text.split()[-1] if text and not text[-1].isspace() else ""
        if text.startswith("/") and text == word:
            for name, sentence in self.list_commands().items():
                if name.startswith(text[1:]):
                    yield Completion(f"/{name}", -len(text), display_meta=sentence)
        elif word.startswith("@"):
            wanted = word[1:].lower()
            matches = (path for path in self._list_files() if wanted in path.lower())
            best = sorted(matches, key=lambda path: (not path.lower().startswith(wanted), path))
            for path in best[:MAX_OFFERED]:
                yield Completion(f"@{path}", -len(word))

    def _list_files(self) -> list[str]:
        """The paths below the folder, without those that git ignores or that cannot be shown."""
        if self._root is not None and monotonic() - self._read > SECONDS:
            command = [str(program()), "--files", "--no-config", "--no-messages"]
            listed = subprocess.run(command, cwd=self._root, capture_output=True, check=False)  # noqa: S603
            paths = listed.stdout.decode(errors="replace").splitlines()[:MAX_FILES]
            self._files, self._read = [path for path in paths if is_plain(path)], monotonic()
        return self._files
