"""Digests that bind a person's decision to what was asked, and an approval to what runs."""

import json
from collections.abc import Sequence
from hashlib import sha256

from langchain_core.runnables import RunnableConfig

from graph.approvals.judging import CallContext, Judged
from graph.approvals.suggestions import switch_targets
from graph.deps import AgentDeps
from graph.messages.repair import call_id


def digest_question(deps: AgentDeps, context: CallContext, judged: Sequence[Judged]) -> str:
    """Differs where anything does that a person would have to know before deciding.

    The mode with its rules, the workspace and the sandbox, what is judged to need a
    person, the arguments with their paths resolved, and the modes that a decision may
    switch to.
    """
    digest = sha256(deps.environment_digest(context.mode.slug).encode())
    for one in judged:
        targets = switch_targets(one.effect, one.args or {})
        parts = [call_id(one.call), one.verdict.kind, one.args, one.call["args"]]
        parts += [deps.catalog[slug].digest for slug in targets]
        digest.update(json.dumps(parts, sort_keys=True, default=repr).encode())
    return digest.hexdigest()


def digest_call(deps: AgentDeps, context: CallContext, one: Judged, config: RunnableConfig) -> str:
    """Differs where another tool would run, on other arguments or files, in another mode.

    And in another thread: a copy of one has the approvals of the first, and its calls.
    """
    thread = str(config["configurable"].get("thread_id", ""))
    place = deps.environment_digest(context.mode.slug)
    parts = [thread, place, one.call["name"], one.call["args"], one.args]
    return sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
