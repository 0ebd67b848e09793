"""A clone starts with an engine that it fits, and with no other."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from modeshift.modes.errors import ConfigurationError
from modeshift.project import check_engine
from tests.harness import prefork
from tests.harness.clone import change, copy_template
from tests.harness.place import environment
from tests.harness.programs import run
from tests.harness.root import ENGINE, TEMPLATE
from tests.tables import rows

RANGE = ">=0.2,<0.3"


@pytest.mark.parametrize(
    "version_range", [">=9.1", "<0.2", ">=0.1,<0.2", "==0.1.*", "~=9.0", "!=0.2.0"]
)
def test_an_engine_too_old_or_too_new_is_refused(version_range: str, tmp_path: Path) -> None:
    assert version("modeshift") == "0.2.0", "else the ranges above are for another one"
    file = tmp_path / "pyproject.toml"
    file.write_text(f'[project]\ndependencies = ["luck", "Modeshift[server,mcp]{version_range}"]\n')
    with pytest.raises(ConfigurationError) as refused:
        check_engine(tmp_path)
    (line,) = str(refused.value).splitlines()
    assert line.startswith("this clone needs modeshift")
    assert version_range.partition(",")[0] in line
    assert f"says {file}, and 0.2.0 is installed: install one that fits" in line


@rows(
    "text",
    f'[project]\ndependencies = ["modeshift[editor] {RANGE}"]',
    '[project]\ndependencies = ["modeshift", "modeshift-luck>=9"]',
    '[project]\nname = "own"',
    "",
)
def test_one_that_fits_or_of_which_nothing_is_said(text: str, tmp_path: Path) -> None:
    check_engine(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text)
    check_engine(tmp_path)


@pytest.mark.parametrize(
    "text", ["[project", "project = 1", "[project]\ndependencies = ['modeshift =>']"]
)
def test_what_cannot_be_read_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigurationError, match="does not say which engine fits"):
        check_engine(tmp_path)


def test_this_clone_fits_and_a_copy_of_an_older_engine_does_not(tmp_path: Path) -> None:
    """As pip makes one of the folder ``engine``."""
    assert f'{RANGE}"' in (TEMPLATE / "pyproject.toml").read_text()
    check_engine(TEMPLATE)
    module = tmp_path / "engine/modeshift/project.py"
    module.parent.mkdir(parents=True)
    module.write_bytes((ENGINE / "modeshift/project.py").read_bytes())
    check_engine(tmp_path)
    module.write_text("# later\n")
    with pytest.raises(ConfigurationError, match=r"is not that of .*engine: run pip install -e \."):
        check_engine(tmp_path)


def test_every_way_to_start_says_so(tmp_path: Path) -> None:
    """Before the clone is imported: it may import what the engine does not have (yet)."""
    copy_template(tmp_path)
    change(tmp_path / "pyproject.toml", RANGE, ">=0.9,<0.10")
    graph = tmp_path / "graph/agent.py"
    served = graph.read_text()
    sentence = "needs modeshift<0.10,>=0.9, says"
    variables = environment(tmp_path)
    for text in (served, "from modeshift import Later\n"):
        graph.write_text(text)
        done = prefork.run("modeshift", "modes", env=variables, cwd=tmp_path)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert sentence in line
    graph.write_text(served)
    # As the server of LangGraph does.
    served_by = run(sys.executable, "-c", "import graph.agent", cwd=tmp_path, env=variables)
    assert served_by.returncode == 1
    assert sentence in served_by.stderr.splitlines()[-1]
