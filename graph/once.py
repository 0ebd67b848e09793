"""``Once``: a change that was begun is not begun a second time.

A checkpoint keeps what a finished task wrote. Of a task that a crash cut off it
knows only that it was due, and a run that goes on would run it anew: a second
commit, a second mail.
"""

from uuid import uuid4


class Once:
    """Which changes this process has begun; mutable, one to a harness."""

    def __init__(self) -> None:
        self.life = uuid4().hex
        """Names this process's life; a task carries that of the process that planned it."""
        self._begun = set[str]()

    def begin(self, task_id: str, life: str) -> bool:
        """Whether the change may run: not if it may have been begun before.

        ``task_id`` is LangGraph's, the same for a task that is run again. It is kept
        for good: that the tool has ended does not mean that its result is stored.
        """
        if life != self.life or task_id in self._begun:
            return False
        self._begun.add(task_id)
        return True
