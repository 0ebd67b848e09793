"""What the tests of a clone use. Nothing of the engine imports it.

``README.md`` of the engine lists the names. Fixtures of pytest are in ``plugin``.
"""

from modeshift.testing.agent import LoadedModes, load_modes, make_agent, script
from modeshift.testing.answers import Sent, next_request, recorded_answers
from modeshift.testing.check import check_agent
from modeshift.testing.check_clone import check_imports, check_modes, check_server
from modeshift.testing.conversation import Conversation, Recorded, judge_call
from modeshift.testing.scripted import ScriptedModel
from modeshift.thread import APPROVE, REJECT, edit

__all__ = [
    "APPROVE",
    "REJECT",
    "Conversation",
    "LoadedModes",
    "Recorded",
    "ScriptedModel",
    "Sent",
    "check_agent",
    "check_imports",
    "check_modes",
    "check_server",
    "edit",
    "judge_call",
    "load_modes",
    "make_agent",
    "next_request",
    "recorded_answers",
    "script",
]
