"""The files to run it for a team: what can be said of them without Docker."""

import re
import shutil
import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict
from repository import ROOT

from modeshift.configuration.settings import Settings
from tests.harness.programs import run

FOLDER = ROOT / "deploy"
SETTINGS = {name.upper() for name in Settings.model_fields}
OTHERS = {"SITE", "POSTGRES_PASSWORD", "DATABASE_URL", "ANTHROPIC_API_KEY"}
"""Variables of the files themselves, of a provider, and one that comes with Postgres."""


def read_compose() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text()))


@pytest.mark.parametrize("name", ["agent-1", "agent-2"])
def test_an_agent_has_no_rights_but_those_that_the_sandbox_needs(name: str) -> None:
    agent = read_compose()["services"][name]
    assert agent["cap_drop"] == ["ALL"]
    assert "no-new-privileges=true" in agent["security_opt"]
    assert "systempaths=unconfined" in agent["security_opt"]
    assert not {"privileged", "cap_add", "user", "ports", "pid"} & agent.keys()
    assert int(agent["stop_grace_period"].removesuffix("s")) > Settings().stop_seconds


def test_compose_names_what_there_is() -> None:
    compose = read_compose()
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (ROOT / source).exists()
        assert set(service.get("depends_on", ())) <= compose["services"].keys()
        assert (ROOT / "deploy/env.example").exists()
    assert {"postgres", "proxy"} < compose["services"].keys()
    assert set(compose["services"]["proxy"]["ports"]) == {"80:80", "443:443"}
    text = (FOLDER / "Caddyfile").read_text()
    assert set(re.findall(r"\S+(?=:2024)", text)) == {"agent-1", "agent-2"}


def test_each_variable_is_a_setting() -> None:
    """A misspelled one would be ignored, and a token not asked for, say."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    unit = (FOLDER / "modeshift.service").read_text()
    agent = read_compose()["services"]["agent-1"]
    names = {
        *agent["environment"],
        *re.findall(r"^([A-Z_]+)=", (FOLDER / "env.example").read_text(), re.MULTILINE),
        *re.findall(r"(?<= )([A-Z_]+)=", dockerfile),
        *re.findall(r"(?<=[= ])([A-Z_]+)=", unit),
    }
    assert names <= SETTINGS | OTHERS
    assert {"WORKSPACES", "CHECKPOINTS", "AUTH_TOKEN", "LISTEN"} <= names


def test_a_password_may_have_what_the_example_says() -> None:
    """Compose puts it into an address as it is."""
    assert "# Letters and digits alone, " in (FOLDER / "env.example").read_text()
    url = read_compose()["services"]["agent-1"]["environment"]["DATABASE_URL"]
    password = string.ascii_letters + string.digits
    parts = conninfo_to_dict(url.replace("${POSTGRES_PASSWORD:?}", password))
    assert (parts["password"], parts["host"]) == (password, "postgres")


def test_the_image_runs_as_no_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["agent"]
    after = lines[lines.index("USER agent") :]
    assert [line for line in after if line.startswith("CMD [")], (
        "no shell between it and the signal"
    )
    assert ".env" in (ROOT / ".dockerignore").read_text().splitlines()
    assert "deploy/.env" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "modeshift.service"
    text = (FOLDER / "modeshift.service").read_text()
    unit.write_text(text.replace("/srv/modeshift/.venv/bin/python", "/bin/true"))
    checked = run("systemd-analyze", "verify", unit)
    assert (checked.returncode, checked.stderr) == (0, "")
    for forbidden in ("RestrictNamespaces=", "ProtectKernelTunables=", "ProtectProc="):
        assert not re.search(f"^{forbidden}", text, re.MULTILINE), "bubblewrap would not work"
