"""Every error that this project raises on purpose, by who can do something about it.

    ModeshiftError
    ├── ModelError               the model: it reads the text as a failed tool call
    │   ├── InvalidCallError       no such tool, or arguments that do not fit it
    │   ├── NotAllowedError        the verdict is deny
    │   │   └── FileRestrictionError   ... for the sake of one file
    │   ├── SlowPatternError       a mode's ``fileRegex`` takes too long
    │   └── ToolFailedError        the tool ran and could not do it
    ├── NodeError                the clone's owner: a node that leaves out what it must not
    └── UserError                the person who runs the agent, or calls it
        ├── ConfigurationError     settings, the workspace
        │   └── MissingKeyError        ... or a model's package or key
        ├── CeilingError           a turn or a thread has taken what it may
        ├── ModeFileError          a modes file that does not load
        ├── UnknownModeError       a slug that is not in the catalog
        ├── StorageError           the database cannot be read or written
        ├── InvalidInputError      a run's input, or a decision, that does not fit
        └── ProviderError          the model's provider failed
            ├── TooLongError         ... because it cannot read that much
            └── RefusedKeyError      ... because it does not accept the key

A programmer's mistake stays a plain Python exception. Messages quote values with ``!r`` and say
what to do.
"""

from collections.abc import Iterable

from pydantic import ValidationError


class ModeshiftError(Exception):
    """Base of the tree above."""


class ModelError(ModeshiftError):
    """The model can do something about it; it never leaves the run as an exception."""


def describe_error(error: BaseException) -> str:
    """An error as the model reads it."""
    return f"{type(error).__name__}: {error}"


def describe_misfit(error: ValidationError) -> str:
    """Where a value does not fit and why, without what pydantic puts around it."""
    problems = []
    for problem in error.errors()[:3]:
        place = ".".join(map(str, problem["loc"]))
        text = str(problem.get("ctx", {}).get("error") or problem["msg"])
        problems.append(f"{place}: {text}" if place else text)
    return "; ".join(problems)


class InvalidCallError(ModelError):
    """A tool call that names no tool, or whose arguments do not fit the tool."""


class NotAllowedError(ModelError):
    """A tool call that the mode forbids."""


class FileRestrictionError(NotAllowedError):
    """A tool call on a file that the mode's ``fileRegex`` does not match."""


class SlowPatternError(ModelError):
    """A pattern that took too long."""


class ToolFailedError(ModelError):
    """A tool that could not do what it was asked; the text says what to do instead.

    ``data`` follows it: what a file says, which is marked as such for the model.
    """

    def __init__(self, text: str, data: str = "") -> None:
        super().__init__(text)
        self.data = data


class NodeError(ModeshiftError, RuntimeError):
    """A node of the graph that the engine refuses to go on with; no gate is open for it."""


class UserError(ModeshiftError, ValueError):
    """The person who runs the agent, or calls it, can do something about it.

    The dev server answers 422 with its text (and hides that of an exception it does not know). Also
    a ``ValueError``, which pydantic reports as a validation failure.
    """


class ConfigurationError(UserError):
    """Settings with which the agent cannot start."""


class CeilingError(UserError):
    """A turn or a thread has reached a ceiling, and a person has said not to go on."""


class MissingKeyError(ConfigurationError):
    """A model whose provider's key, or package, is not there."""


class ModeFileError(UserError):
    """A modes file that does not load; the text names file, field and value."""


class UnknownModeError(UserError):
    """A slug that no mode has."""

    def __init__(self, slug: object, known: Iterable[str]) -> None:
        super().__init__(f"unknown mode {slug!r}; the modes are: {', '.join(known)}")


class StorageError(UserError):
    """The database cannot be used, now or by this version; nothing was changed."""


class InvalidInputError(UserError):
    """A run's input, or a decision, that does not fit; nothing was changed."""


class ProviderError(UserError):
    """The model's provider failed; the text says what it answered."""


class TooLongError(ProviderError):
    """The conversation is longer than the model reads, and nothing of an answer has come."""


class RefusedKeyError(ProviderError):
    """The provider does not accept the key, or does not let it use the model."""
