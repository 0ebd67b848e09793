"""``check_config``: checks the config of a run, a cron or an assistant before it is stored.

The server merges it into its thread's config, and ``callbacks``, or a ``metadata`` that is no
object, would leave a thread that cannot be read.
"""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from modeshift.modes.errors import InvalidInputError, describe_misfit

Count = Annotated[int, Field(ge=1)]


class _Configurable(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]  # as pydantic wants it
    checkpoint_id: str | None
    checkpoint_ns: str | None
    checkpoint_map: dict[str, str]


class _Config(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # as above
    tags: list[str]
    metadata: dict[str, object] | None
    callbacks: None
    run_name: str | None
    recursion_limit: Count
    max_concurrency: Count | None
    configurable: _Configurable


_CONFIG = TypeAdapter(_Config)


def check_config(config: Any, context: object = None) -> None:
    """Raise ``InvalidInputError``. The server uses a ``context`` as the ``configurable``."""
    values = {**config, "configurable": context} if context else config or {}
    try:
        _CONFIG.validate_python(values, strict=True)
    except ValidationError as error:
        raise InvalidInputError(f"config does not fit: {describe_misfit(error)}") from error
    if names := [name for name in values.get("configurable", {}) if name.startswith("__pregel")]:
        raise InvalidInputError(f"config does not fit: {names[0]!r} is LangGraph's own")
