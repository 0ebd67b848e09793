"""``Workshop``: makes harnesses from the settings and from the modes' files as they are."""

from graph.harness import Harness
from graph.models import Models
from graph.once import Once
from graph.settings import DEFAULT_WORKSPACE, Settings
from graph.sources import Sources
from tools.toolbox import build_toolbox
from tools.workspace import Workspace


class Workshop:
    """One to a process: the models and the record of what has begun outlive a harness."""

    def __init__(self, settings: Settings) -> None:
        """Raises ``ConfigurationError``; blocks, as the methods do.

        Makes the default workspace; one that the user names must exist.
        """
        if settings.workspace == DEFAULT_WORKSPACE:
            DEFAULT_WORKSPACE.mkdir(exist_ok=True)
        self._settings = settings
        self._workspace = Workspace(settings.workspace)
        self._models = Models(settings.model)
        self._once = Once()
        self._sources = Sources(settings, self._workspace)

    def harness(self) -> Harness:
        """A harness of the modes as their files are now; raises ``UserError``."""
        loaded = self._sources.load()
        problems = [
            f"{mode.origin.file}: mode {mode.slug!r} cannot be used: {problem}"
            for mode in map(loaded.catalog.__getitem__, loaded.catalog)
            if (problem := self._models.problem(mode.model))
        ]
        return Harness(
            loaded.catalog,
            build_toolbox(self._workspace, loaded.catalog),
            self._models,
            self._settings.approvals,
            loaded.project.rules,
            (*loaded.notices, *problems),
            self._once,
        )

    def is_outdated(self) -> bool:
        """Whether a file that the last harness was made from may have changed."""
        return self._sources.changed()
